"""Lock the child in before it sees the first byte of a source.

    die with the parent → empty network → imports and warm-up → rlimits → no new privileges → Landlock → seccomp → work

Warm first: Python and PyAV import lazily, and behind Landlock that fails in the middle of the work. The network goes
before all threads: a user namespace is only for a process that has one.
"""

from __future__ import annotations

import ctypes
import errno
import os
import select
import signal
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

from telecine.media.child.protocol import OrderRefused
from telecine.media.child.sandbox import landlock, seccomp
from telecine.media.ladders.encoder_families import FAMILIES
from telecine.media.orders import ChildLimits
from telecine.media.sandbox_layers import LANDLOCK_TCP_SINCE

_PR_SET_PDEATHSIG = 1
_NEW_USER, _NEW_NET = 0x10000000, 0x40000000
_DESCRIPTORS = 256
_PROCESSES = 256  # threads count, too
_GRACE_SECONDS = 5  # between the CPU limit that is told and the one that kills
# What Python and PyAV would import only when they need it.
_LAZY = (
    *("av.subtitles.stream", "av.subtitles.codeccontext", "av.audio.stream", "av.video.stream"),
    *("encodings.idna", "encodings.latin_1", "logging"),
)
_status: int | None = None


def die_with_parent(channel: int | None = None) -> None:
    """The kernel ends us with whoever started us; if that one has hung up already, we end now."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if channel is None:
        return
    poll = select.poll()
    poll.register(channel, select.POLLHUP)
    if any(event & select.POLLHUP for _, event in poll.poll(0)):
        os._exit(1)


def leave_network() -> bool:
    """Go into a network namespace without any interface. False: this machine does not let us."""
    if sys.platform != "linux":
        return False
    libc = ctypes.CDLL(None)
    left = bool(libc.unshare(_NEW_USER | _NEW_NET) == 0 or libc.unshare(_NEW_NET) == 0)
    libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)  # a change of credentials may clear it
    return left


def import_lazies() -> None:
    for name in _LAZY:
        import_module(name)


def enter(order: Any, operation: ModuleType, scratch: Path, *, netns: bool) -> dict[str, Any]:
    """Warm up, then give up all rights that the order does not need; answer which walls stand on this machine."""
    import_lazies()
    if warm_up := getattr(operation, "warm_up", None):
        warm_up(order)
    _watch_memory()
    hardware = [need for family in _families(order) for need in FAMILIES[family].needs]
    limited = list(_limit(order.limits, address_space=not hardware, namespaced=netns))
    if sys.platform != "linux":
        return {"landlock": None, "tcp": False, "netns": False, "seccomp": False, "rlimits": limited}
    landlock.no_new_privileges()
    abi = landlock.restrict(scratch, hardware)
    return {
        "landlock": abi,
        "tcp": abi is not None and abi >= LANDLOCK_TCP_SINCE,
        "netns": netns,
        "seccomp": seccomp.restrict(),
        "rlimits": limited,
    }


def is_out_of_memory(error: BaseException, limit: int | None) -> bool:
    """Did this happen because memory ended? Encoders only say "Generic error in an external library"."""
    if isinstance(error, MemoryError) or getattr(error, "errno", None) == errno.ENOMEM:
        return True
    cause = error.__cause__
    if cause is not None and is_out_of_memory(cause, limit):
        return True
    vague = "external library" in str(error)
    return vague and limit is not None and peak("VmPeak") > limit // 2


def memory_limit() -> int | None:
    """Bytes of address space that this process may have; None: as much as it likes."""
    if sys.platform == "win32":
        return None
    import resource  # noqa: PLC0415 - not on every system

    most, _ = resource.getrlimit(resource.RLIMIT_AS)
    return None if most == resource.RLIM_INFINITY else most


def peak(name: str) -> int:
    """Bytes: "VmPeak", the most address space so far, or "VmHWM", the most memory in use. 0: not known."""
    if _status is None:
        return 0
    for line in os.pread(_status, 1 << 14, 0).decode().splitlines():
        if line.startswith(f"{name}:"):
            return int(line.split()[1]) * 1024
    return 0


def _watch_memory() -> None:
    """Keep open what tells our use of memory: behind Landlock it cannot be opened any more."""
    global _status  # noqa: PLW0603 - one process, one order
    if _status is None and Path("/proc/self/status").exists():
        _status = os.open("/proc/self/status", os.O_RDONLY | os.O_CLOEXEC)


def _families(order: Any) -> set[str]:
    rungs = [*getattr(order, "rungs", ()), *(wanted.rung for wanted in getattr(order, "wanted", ()))]
    return {rung.family for rung in rungs if rung.family in FAMILIES}


def _limit(limits: ChildLimits, *, address_space: bool, namespaced: bool) -> Iterator[str]:
    if sys.platform == "win32":
        return
    import resource  # noqa: PLC0415 - not on every system

    wanted = [("core", resource.RLIMIT_CORE, 0), ("nofile", resource.RLIMIT_NOFILE, _DESCRIPTORS)]
    if limits.memory is not None and address_space:  # drivers of cards reserve far more than they use
        wanted.append(("as", resource.RLIMIT_AS, limits.memory))
    if limits.file_bytes is not None:
        wanted.append(("fsize", resource.RLIMIT_FSIZE, limits.file_bytes))
    if namespaced:  # elsewhere it would count all processes of the same user
        wanted.append(("nproc", resource.RLIMIT_NPROC, _PROCESSES))
    for name, kind, most in wanted:
        _, hard = resource.getrlimit(kind)
        lowered = most if hard == resource.RLIM_INFINITY else min(most, hard)
        resource.setrlimit(kind, (lowered, lowered))
        yield name
    if limits.cpu_seconds is not None:
        signal.signal(signal.SIGXCPU, _out_of_time)
        resource.setrlimit(resource.RLIMIT_CPU, (limits.cpu_seconds, limits.cpu_seconds + _GRACE_SECONDS))
        yield "cpu"


def _out_of_time(number: int, frame: object) -> None:
    raise OrderRefused("out_of_cpu_time", "the limit of CPU time for this order is used up")
