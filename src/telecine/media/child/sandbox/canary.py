"""Try what a child must not do, and tell how it ended. For tests and for `telecine doctor` only."""

from __future__ import annotations

import ctypes
import os
import socket
import stat
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from telecine.media.child.protocol import ChildSession
from telecine.media.orders import ChildLimits


@dataclass(frozen=True, slots=True, kw_only=True)
class Canary:
    """What to try. The ports are those of listeners on the loopback, `unix` is the path of one."""

    op: ClassVar[str] = "canary"
    read: str = "/etc/passwd"
    write: str = "/tmp/telecine-canary"
    tcp: int | None = None
    udp: int | None = None
    unix: str | None = None
    limits: ChildLimits = field(default_factory=ChildLimits)


def run(order: Canary, talk: ChildSession) -> Mapping[str, Any]:
    """For each thing that was tried: why it was refused; None: it was done."""
    tries: dict[str, Callable[[], object]] = {
        "scratch": lambda: (talk.scratch / "canary").write_bytes(b"mine"),  # this one must go
        "read": lambda: Path(order.read).read_bytes(),
        "write": lambda: Path(order.write).write_bytes(b"out"),
        "list": lambda: os.listdir("/"),
        "process": lambda: os.posix_spawn("/bin/true", ["true"], {}),  # noqa: TID251 - shall be refused
    }
    if order.tcp is not None:
        tries["tcp"] = lambda: socket.create_connection(("127.0.0.1", order.tcp), timeout=2).close()
    if order.udp is not None:
        tries["udp"] = lambda: _send(order.udp)
    if order.unix is not None:
        tries["unix"] = lambda: _connect(str(order.unix))
    if (limit := order.limits.memory) is not None:
        tries["memory"] = lambda: bytearray(limit)
    if sys.platform == "linux":
        tries |= _of_linux(Path(order.read), os.getppid())
    return {"tried": {name: _refusal(attempt) for name, attempt in tries.items()}}


def _of_linux(file: Path, parent: int) -> dict[str, Callable[[], object]]:
    """Things that no path rule covers: a foreign file's attributes, and the process that started this one.

    Whatever is let through changes nothing that matters: each value is set to what it is.
    """
    import resource  # noqa: PLC0415 - not on every system

    files = resource.RLIMIT_NOFILE
    return {
        "chmod": lambda: file.chmod(stat.S_IMODE(file.stat().st_mode)),
        "chown": lambda: os.chown(file, -1, -1),
        "utime": lambda: os.utime(file),
        "xattr": lambda: os.setxattr(file, "user.telecine", b"mine"),
        "prlimit": lambda: resource.prlimit(parent, files, resource.getrlimit(files)),
        "renice": lambda: os.setpriority(os.PRIO_PROCESS, parent, os.getpriority(os.PRIO_PROCESS, parent)),
        "reschedule": lambda: os.sched_setaffinity(parent, os.sched_getaffinity(parent)),
        "signal": lambda: os.kill(parent, 0),
        "shared_memory": _share_memory,
        "chroot": lambda: os.chroot("."),  # the last: what comes after it would look elsewhere
    }


def _share_memory() -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    number = libc.shmget(0, 4096, 0o600)
    if number < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    libc.shmctl(number, 0, None)


def _refusal(attempt: Callable[[], object]) -> str | None:
    try:
        attempt()
    except (OSError, MemoryError) as error:
        return f"{type(error).__name__}: {error}"
    return None


def _send(port: int | None) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as udp:
        udp.sendto(b"out", ("127.0.0.1", port))


def _connect(path: str) -> None:
    with socket.socket(socket.AF_UNIX) as unix:
        unix.connect(path)
