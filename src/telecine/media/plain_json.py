"""Dataclasses to plain JSON and back. The media child reads its orders with this: it must import quickly."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from fractions import Fraction
from functools import cache
from types import UnionType
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

T = TypeVar("T")


def to_plain(value: Any) -> Any:
    """What `json.dumps` can write. A fraction is the text "24000/1001"."""
    if isinstance(value, Fraction):
        return f"{value.numerator}/{value.denominator}"
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: to_plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, (list, tuple)):
        return [to_plain(item) for item in value]
    if isinstance(value, Mapping):
        return {key: to_plain(item) for key, item in value.items()}
    return value


def from_plain(kind: type[T], data: Any) -> T:
    """The value that `to_plain` was given. Names that this release does not know are ignored."""
    made: T = _made(kind, data)
    return made


@cache
def _hints(kind: type) -> dict[str, Any]:
    return get_type_hints(kind)


def _made(kind: Any, data: Any) -> Any:
    origin = get_origin(kind)
    if origin in (Union, UnionType):
        return None if data is None else _made(next(one for one in get_args(kind) if one is not type(None)), data)
    if origin is tuple:
        item, *rest = get_args(kind)
        if rest == [...]:
            return tuple(data) if item is int else tuple(_made(item, one) for one in data)
        return tuple(_made(one, value) for one, value in zip((item, *rest), data, strict=True))
    if origin is dict:
        return {key: _made(get_args(kind)[1], value) for key, value in data.items()}
    if kind is Fraction:
        return Fraction(data)
    if is_dataclass(kind) and isinstance(kind, type):
        hints = _hints(kind)
        return kind(**{name: _made(hints[name], value) for name, value in data.items() if name in hints})
    return data
