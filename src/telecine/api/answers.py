"""Values of ours as JSON: written in Rust by their types, once, without a second look."""

from __future__ import annotations

from typing import Any

from pydantic import TypeAdapter
from starlette.responses import Response

_ADAPTERS: dict[Any, TypeAdapter[Any]] = {}


def answer(value: Any, kind: Any = None, *, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    """`value` as JSON. `kind` is its type where the value itself does not tell, as with `Page[JobLine]`."""
    kind = kind or type(value)
    adapter = _ADAPTERS.get(kind) or _ADAPTERS.setdefault(kind, TypeAdapter(kind))
    return Response(adapter.dump_json(value), status_code=status, headers=headers, media_type="application/json")
