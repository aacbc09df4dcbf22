"""The codec for facts between processes: worker and server, worker and child process.

    to_json(Holding(task_id=7, token=2))             {"task_id": 7, "token": 2, "progress": None, "note": None}
    from_json(Holding, {"task_id": 7, "token": 2})   Holding(task_id=7, token=2)

The annotations of the dataclasses and named tuples in `facts` define the form. A reader ignores fields that it does not
know, and takes the default for a field that is missing, so that two releases can talk to each other. A child process
imports this module when it starts: no pydantic here.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, is_dataclass
from enum import Enum
from functools import cache
from types import NoneType, UnionType
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

from telecine.facts import Brief, Done, Fact, Failed, Json, KeptArtifact, LeaseOutcome, Piece, Released

T = TypeVar("T")
Convert = Callable[[Any], Any]

# What a worker may report about a task; the other facts are for recovery.
OUTCOMES: dict[str, type[Done] | type[Failed] | type[Released]] = {"done": Done, "failed": Failed, "released": Released}


def to_json(value: Any) -> dict[str, Json]:
    """A dataclass or a named tuple as an object; values of type `Json` are not copied."""
    kind: Any = type(value)
    return _writer(kind)(value)  # type: ignore[misc, no-any-return]


def from_json(kind: type[T], data: dict[str, Json]) -> T:
    read: Any = _reader(kind)  # type: ignore[arg-type]
    return read(data)  # type: ignore[no-any-return]


def fact_to_json(fact: Fact) -> dict[str, Json]:
    """An outcome as an object with one field, its kind: `{"done": {…}}`."""
    for name, kind in OUTCOMES.items():
        if isinstance(fact, kind):
            return {name: to_json(fact)}
    raise TypeError(f"a worker cannot report {type(fact).__name__}")


def fact_from_json(data: dict[str, Json]) -> Done | Failed | Released:
    found = [from_json(kind, data[name]) for name, kind in OUTCOMES.items() if data.get(name) is not None]
    if len(found) != 1:
        raise ValueError("an outcome is exactly one of done, failed and released")
    return found[0]


# -- where the form is not that of the annotations -----------------------------------------------------


def _word_to(word: LeaseOutcome) -> dict[str, Json]:
    return {"task_id": word.task_id, "token": word.token, **fact_to_json(word.fact)}


def _word_from(data: dict[str, Json]) -> LeaseOutcome:
    return LeaseOutcome(data["task_id"], data["token"], fact_from_json(data))


def _kept_to(kept: dict[str, KeptArtifact]) -> list[Json]:
    """Each has its name."""
    return [to_json(one) for one in kept.values()]


def _kept_from(data: list[Json]) -> dict[str, KeptArtifact]:
    return {one["name"]: from_json(KeptArtifact, one) for one in data}


def _plan_to(plan: dict[str, list[Any]] | None) -> Json:
    """A bare input becomes an object with nothing but `input`, a `Piece` has all its fields."""
    if plan is None:
        return None
    return {
        name: [to_json(one) if isinstance(one, Piece) else {"input": one} for one in pieces]
        for name, pieces in plan.items()
    }


def _plan_from(data: Json) -> dict[str, list[Any]] | None:
    """A bare input stays one: the digest of the outcome must not depend on how it came."""
    if data is None:
        return None
    return {
        name: [from_json(Piece, one) if one.keys() - {"input"} else one.get("input") for one in pieces]
        for name, pieces in data.items()
    }


_WHOLE: dict[type, tuple[Convert, Convert]] = {LeaseOutcome: (_word_to, _word_from)}
_FIELDS: dict[tuple[type, str], tuple[Convert, Convert]] = {
    (Brief, "kept"): (_kept_to, _kept_from),
    (Done, "plan"): (_plan_to, _plan_from),
}


# -- by the annotations --------------------------------------------------------------------------------


@cache
def _writer(kind: Any) -> Convert | None:
    """How values of this type are written; None: as they are."""
    if kind in _WHOLE:
        return _WHOLE[kind][0]
    if _is_record(kind):
        return _record_writer(kind)
    kind, is_optional = _without_none(kind)
    if is_optional:
        return _unless_none(_writer(kind))
    if get_origin(kind) is tuple:
        return _each(list, _writer(_item(kind)))
    return bool if kind is bool else None  # a handler may give any value that is true


@cache
def _reader(kind: Any) -> Convert | None:
    if kind in _WHOLE:
        return _WHOLE[kind][1]
    if _is_record(kind):
        return _record_reader(kind)
    kind, is_optional = _without_none(kind)
    if is_optional:
        return _unless_none(_reader(kind))
    if get_origin(kind) is tuple:
        return _each(tuple, _reader(_item(kind)))
    return kind if isinstance(kind, type) and issubclass(kind, Enum) else None


def _record_writer(kind: Any) -> Convert:
    parts = [(name, _FIELDS.get((kind, name), (_writer(hint), None))[0]) for name, hint in _hints(kind).items()]

    def write(value: Any) -> dict[str, Json]:
        return {
            name: getattr(value, name) if convert is None else convert(getattr(value, name)) for name, convert in parts
        }

    return write


def _record_reader(kind: Any) -> Convert:
    parts = [(name, _FIELDS.get((kind, name), (None, _reader(hint)))[1]) for name, hint in _hints(kind).items()]

    def read(data: dict[str, Json]) -> Any:
        return kind(
            **{name: data[name] if convert is None else convert(data[name]) for name, convert in parts if name in data}
        )

    return read


def _is_record(kind: Any) -> bool:
    return isinstance(kind, type) and (is_dataclass(kind) or hasattr(kind, "_fields"))


def _hints(kind: Any) -> dict[str, Any]:
    names = kind._fields if hasattr(kind, "_fields") else [field.name for field in fields(kind)]
    hints = get_type_hints(kind)
    return {name: hints[name] for name in names}


def _item(kind: Any) -> Any:
    """The type of the items of a tuple; the tuples of `facts` have items of one type."""
    return get_args(kind)[0]


def _each(collect: Convert, convert: Convert | None) -> Convert:
    return collect if convert is None else lambda values: collect(map(convert, values))


def _without_none(kind: Any) -> tuple[Any, bool]:
    """`X | None` as X."""
    if get_origin(kind) in (Union, UnionType):
        parts = [part for part in get_args(kind) if part is not NoneType]
        if len(parts) == 1 and len(get_args(kind)) > 1:
            return parts[0], True
    return kind, False


def _unless_none(convert: Convert | None) -> Convert | None:
    return None if convert is None else lambda value: None if value is None else convert(value)
