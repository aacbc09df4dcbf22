"""Which attempt the code that runs here belongs to, for log lines; and who watches attempts."""

from __future__ import annotations

from contextvars import ContextVar
from typing import Protocol

from telecine.facts import Fact, Lease, SettleReply

current_lease: ContextVar[Lease | None] = ContextVar("current_lease", default=None)


def about(lease: Lease) -> dict[str, int]:
    """Whose line it is, as `extra` of a logger."""
    return {"job": lease.job_id, "task": lease.task_id, "token": lease.token, "worker": lease.worker}


class Observer(Protocol):
    """Hears of every attempt of a worker; must be quick, and must not raise."""

    def begun(self, lease: Lease) -> None:
        """Its handler is about to run."""

    def ended(self, lease: Lease, fact: Fact) -> None:
        """Its handler has ended, or was given up; may be said twice."""

    def settled(self, lease: Lease, answer: SettleReply) -> None:
        """The engine has answered."""
