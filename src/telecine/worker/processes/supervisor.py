"""The supervisor of a handler's process: ends everything that the handler started, whatever happens to whom.

    worker ──lifeline──▶ supervisor ──forks──▶ handler ──▶ whatever the handler starts
       T: TERM the group, KILL after a while            K, or the end of the line: KILL now

The supervisor runs no code of the user, so it always listens. It adopts orphans (subreaper), so it also finds a
grandchild that has left the process group. When the worker dies, the lifeline breaks; when the supervisor dies, the
kernel kills the handler (parent-death signal) and the worker kills the group. Imports little: it is part of every
child's start.
"""

from __future__ import annotations

import os
import select
import signal
import sys
import time
from contextlib import suppress
from typing import NoReturn

PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36
LAST_SECONDS = 2.0


def split(lifeline: int, worker: int, term: float) -> None:
    """Become two: the supervisor, which never returns from here, and the handler's process, which does."""
    supervisor = os.getpid()
    _prctl(PR_SET_CHILD_SUBREAPER, 1)
    child = os.fork()  # noqa: TID251 - a fork of ourselves, before any thread and any code of the user
    if child:
        _watch(lifeline, worker, child, term)
    os.close(lifeline)
    die_with(supervisor)


def die_with(parent: int) -> None:
    """The kernel ends us with our parent; if it has ended before that was asked for, we end now."""
    _prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)


def _watch(lifeline: int, worker: int, child: int, term: float) -> NoReturn:
    woken, waker = os.pipe()
    os.set_blocking(waker, False)
    signal.set_wakeup_fd(waker, warn_on_full_buffer=False)
    for number in (signal.SIGCHLD, signal.SIGTERM, signal.SIGINT):
        signal.signal(number, _nothing)
    _prctl(PR_SET_PDEATHSIG, signal.SIGTERM)  # beside the lifeline, which a fork inside the worker could keep open
    code: int | None = None
    kill_at = float("inf")
    while code is None and os.getppid() == worker and time.monotonic() < kill_at:
        code = _reap(child)
        if code is not None:
            break
        patience = None if kill_at == float("inf") else max(0.0, kill_at - time.monotonic())
        ready = _ready((lifeline, woken), patience)
        if woken in ready:
            os.read(woken, 512)
        if lifeline in ready:
            word = _hear(lifeline)
            if word != b"T":
                break
            os.killpg(os.getpgrp(), signal.SIGTERM)
            kill_at = min(kill_at, time.monotonic() + term)
    code = _end_everyone(child, code)
    with suppress(OSError):
        os.write(lifeline, f"{code}\n".encode())
    os._exit(0)


def _ready(descriptors: tuple[int, ...], patience: float | None) -> set[int]:
    """By `poll`: `select` knows no descriptor above 1023, and a worker inside a busy server hands on such."""
    news = select.poll()
    for one in descriptors:
        news.register(one, select.POLLIN)
    return {one for one, _ in news.poll(None if patience is None else 1_000 * patience)}


def _hear(lifeline: int) -> bytes:
    try:
        heard = os.read(lifeline, 64)
    except OSError:
        return b""
    return b"K" if b"K" in heard else heard[:1]


def _reap(child: int) -> int | None:
    """Collect who has ended; the handler's exit code, or minus its signal, if it is among them."""
    code: int | None = None
    with suppress(ChildProcessError):
        while True:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if pid == 0:
                break
            if pid == child:
                code = os.waitstatus_to_exitcode(status)
    return code


def _end_everyone(child: int, code: int | None) -> int | None:
    """Kill all that descend from us, until nobody is left."""
    deadline = time.monotonic() + LAST_SECONDS
    while time.monotonic() < deadline:
        family = _descendants()
        for pid in family:
            with suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        ended = _reap(child)
        code = ended if code is None else code
        if not family and not _has_children():
            break
        time.sleep(0.002)
    return code


def _descendants() -> list[int]:
    """Everybody below this process; without /proc, the handler's group at least."""
    try:
        pids = [int(name) for name in os.listdir("/proc") if name.isdigit()]
    except OSError:
        os.killpg(os.getpgrp(), signal.SIGKILL)
        return []
    parents = {pid: _parent(pid) for pid in pids}
    family = {os.getpid()}
    grown = True
    while grown:
        more = {pid for pid, parent in parents.items() if parent in family and pid not in family}
        grown = bool(more)
        family |= more
    family.discard(os.getpid())
    return sorted(family)


def _parent(pid: int) -> int:
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            fields = file.read().rpartition(b")")[2].split()
    except OSError:
        return 0
    return 0 if fields[0] in (b"Z", b"X") else int(fields[1])


def _has_children() -> bool:
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return False
    return True


def _prctl(option: int, value: int) -> None:
    if sys.platform == "linux":
        import ctypes  # noqa: PLC0415 - only where there is such a call

        ctypes.CDLL(None).prctl(option, value, 0, 0, 0)


def _nothing(number: int, frame: object) -> None:
    """A signal only wakes the supervisor up."""
