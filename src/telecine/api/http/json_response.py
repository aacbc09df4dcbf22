"""Values of ours as JSON: written in Rust by their types, once, without a second look."""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from typing import Any

from pydantic import BaseModel, TypeAdapter
from pydantic_core import PydanticSerializationError
from starlette.responses import Response

# What handlers return may be nested as deep as they like; an answer is cut where nobody could read on.
DEEPEST = 100
CUT = "… (nested too deeply to be shown)"
_ADAPTERS: dict[Any, TypeAdapter[Any]] = {}


def answer(value: Any, kind: Any = None, *, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    """`value` as JSON. `kind` is its type where the value itself does not tell, as with `Page[JobLine]`."""
    kind = kind or type(value)
    adapter = _ADAPTERS.get(kind) or _ADAPTERS.setdefault(kind, TypeAdapter(kind))
    try:
        text = adapter.dump_json(value)
    except PydanticSerializationError:
        text = TypeAdapter(Any).dump_json(_cut(value, DEEPEST))
    return Response(text, status_code=status, headers=headers, media_type="application/json")


def _cut(value: Any, levels: int) -> Any:
    if is_dataclass(value):
        return {field.name: _cut(getattr(value, field.name), levels - 1) for field in fields(value)}
    if not isinstance(value, (dict, list, tuple, BaseModel)):
        return value
    if levels <= 0:
        return CUT
    if isinstance(value, (list, tuple)):
        return [_cut(item, levels - 1) for item in value]
    return {name: _cut(item, levels - 1) for name, item in dict(value).items()}
