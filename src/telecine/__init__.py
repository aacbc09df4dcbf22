"""Telecine turns media files into published, streamable media, and never loses work."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from telecine.facts import Done, Failed, Piece
from telecine.flow import Bench, Flow

if TYPE_CHECKING:
    from telecine.client import Client, connect
    from telecine.engine import Submission, Submitted
    from telecine.settings import Settings

# Whoever only writes a flow shall not wait for database drivers to load.
_LATER = {
    "Client": "telecine.client",
    "Settings": "telecine.settings",
    "Submission": "telecine.engine",
    "Submitted": "telecine.engine",
    "connect": "telecine.client",
}

__all__ = ["Bench", "Client", "Done", "Failed", "Flow", "Piece", "Settings", "Submission", "Submitted", "connect"]


def __getattr__(name: str) -> Any:
    if name in _LATER:
        from importlib import import_module  # noqa: PLC0415

        return getattr(import_module(_LATER[name]), name)
    raise AttributeError(f"module 'telecine' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
