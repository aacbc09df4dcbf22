"""Which attempt the code that runs here belongs to, for log lines."""

from __future__ import annotations

from contextvars import ContextVar

from telecine.facts import Lease

current_lease: ContextVar[Lease | None] = ContextVar("current_lease", default=None)
