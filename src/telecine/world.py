"""Chance, ids and the machine's own facts come in through one value; the linter forbids the rest.

There is no wall clock here: the database's clock is the only one that decides anything. `mono` is
the worker's own, monotonic clock, which may only make it stop early.
"""

from __future__ import annotations

import os
import random
import secrets
import socket
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from telecine.retry import Dice

_STARTTIME_FIELD = 19  # of /proc/<pid>/stat, counted after the parenthesised command name


@dataclass(frozen=True, slots=True)
class Machine:
    """Which boot of which machine this is. Equal values: a pid here is a pid there."""

    hostname: str
    boot_id: str | None
    pid_space: str | None

    def is_known(self) -> bool:
        return self.boot_id is not None and self.pid_space is not None


def this_machine() -> Machine:
    return Machine(socket.gethostname(), _read("/proc/sys/kernel/random/boot_id"), _pid_space())


def process_start(pid: int) -> int | None:
    """When a process started, in ticks since boot; None if that cannot be read."""
    stat = _read(f"/proc/{pid}/stat")
    return None if stat is None else _started(stat)


def is_gone(pid: int, started: int) -> bool:
    """True only with proof: the kernel knows no such process, or the pid is another one's by now.

    Whatever cannot be read (no descriptor left, hidden by the administrator) is taken for alive.
    """
    stat = _read(f"/proc/{pid}/stat")
    if stat is not None:
        return _fields(stat)[0] in ("Z", "X") or _started(stat) != started
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    except OSError:
        return False
    return False


def _fields(stat: str) -> list[str]:
    return stat.rpartition(")")[2].split()


def _started(stat: str) -> int:
    return int(_fields(stat)[_STARTTIME_FIELD])


def _pid_space() -> str | None:
    try:
        return os.readlink("/proc/self/ns/pid")
    except OSError:
        return None


def _read(path: str) -> str | None:
    try:
        return Path(path).read_text(errors="replace").strip()
    except OSError:
        return None


@dataclass(frozen=True, slots=True)
class World:
    dice: Dice = field(default_factory=random.Random)
    new_id: Callable[[], str] = field(default=lambda: secrets.token_hex(16))
    secret: Callable[[], str] = field(default=lambda: secrets.token_hex(32))  # 256 bits
    mono: Callable[[], float] = field(default=time.monotonic)
    machine: Machine = field(default_factory=this_machine)
    process_start: Callable[[int], int | None] = process_start
    is_gone: Callable[[int, int], bool] = is_gone
