"""Telecine turns media files into published, streamable media, and never loses work."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from telecine.client import Client, connect
    from telecine.engine import Submission, Submitted
    from telecine.engine.events.stream import Event, Reset
    from telecine.engine.queries.view_models import JobView
    from telecine.errors import TelecineError
    from telecine.facts import Done, Failed, Piece
    from telecine.flow import Bench, Flow
    from telecine.settings import Settings

# Looked up when they are used: whoever writes a flow shall not wait for database drivers, nor `--help` for anything.
_HOMES = {
    "Bench": "telecine.flow",
    "Client": "telecine.client",
    "Done": "telecine.facts",
    "Event": "telecine.engine.events.stream",
    "Failed": "telecine.facts",
    "Flow": "telecine.flow",
    "JobView": "telecine.engine.queries.view_models",
    "Piece": "telecine.facts",
    "Reset": "telecine.engine.events.stream",
    "Settings": "telecine.settings",
    "Submission": "telecine.engine",
    "Submitted": "telecine.engine",
    "TelecineError": "telecine.errors",
    "connect": "telecine.client",
}

__all__ = [
    "Bench",
    "Client",
    "Done",
    "Event",
    "Failed",
    "Flow",
    "JobView",
    "Piece",
    "Reset",
    "Settings",
    "Submission",
    "Submitted",
    "TelecineError",
    "connect",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'telecine' has no attribute {name!r}")
    from importlib import import_module  # noqa: PLC0415

    value = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
