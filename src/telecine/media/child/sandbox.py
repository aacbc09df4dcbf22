"""Lock the child in before it sees the first byte of a source."""

from __future__ import annotations

import ctypes
import os
import select
import signal
from pathlib import Path
from typing import Any

_PR_SET_PDEATHSIG = 1


def die_with_parent(channel: int) -> None:
    """The kernel ends us with whoever started us; if that one is gone already, we end now."""
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    poll = select.poll()
    poll.register(channel, select.POLLHUP)
    if any(event & select.POLLHUP for _, event in poll.poll(0)):
        os._exit(1)


def enter(order: Any, scratch: Path) -> dict[str, Any]:
    """Give up all rights that the order does not need; answer what that means on this machine."""
    return {}


def is_out_of_memory(error: Exception, limit: int | None) -> bool:
    return isinstance(error, MemoryError)
