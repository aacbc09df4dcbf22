"""System calls that a child has no use for, refused by a filter in the kernel.

Landlock and an empty network leave one way out: a socket that has a path, such as a database's or a container engine's.
So there is no new socket here, no connection, no other program, no process; only threads. io_uring goes, too: what it
does, no filter sees. Nor does Landlock cover the mode, owner, times and attributes of files, or what one process may do
to another of the same user: the filter refuses these as well. `syscalls` has the list.
"""

from __future__ import annotations

import ctypes
import errno
import os
from collections.abc import Iterator, Sequence

from telecine.media.child.sandbox.syscalls import by_argument, refused
from telecine.media.sandbox_layers import SECCOMP, seccomp_is_offered

_SET_FILTER = 1
_ALL_THREADS = 1  # of this process, and not only the one that asks
_CLONE_THREAD = 0x10000
_FOREIGN = 0x40000000  # x86_64 has a second table of calls from here on
_POINTER = 2  # the argument of prlimit64 that is one

Instruction = tuple[int, int, int, int]

# Where the kernel puts what it asks about: the call's number, the machine, the arguments of eight bytes each.
_NUMBER, _MACHINE, _ARGUMENTS = 0, 4, 16
_LOAD, _EQUAL, _AT_LEAST, _HAS_BIT, _ANSWER = 0x20, 0x15, 0x35, 0x45, 0x06
_ALLOW, _ERRNO = 0x7FFF0000, 0x00050000
_REFUSE = _ERRNO | errno.EACCES
_UNKNOWN = _ERRNO | errno.ENOSYS  # the C library then takes the older call, whose flags can be read

_AUDIT = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
# ioctl: type into a terminal (TIOCSTI, TIOCLINUX), change a file's flags (FS_IOC_SETFLAGS, FS_IOC_FSSETXATTR).
_REFUSED_CONTROLS = (0x5412, 0x541C, 0x40086602, 0x401C5820)


class _Step(ctypes.Structure):
    _fields_ = (("code", ctypes.c_uint16), ("yes", ctypes.c_uint8), ("no", ctypes.c_uint8), ("value", ctypes.c_uint32))


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_uint16), ("steps", ctypes.POINTER(_Step)))


def restrict() -> bool:
    """Refuse them from here on, in all threads. False: not on this machine. Needs `no_new_privileges`."""
    if not seccomp_is_offered():
        return False
    name = os.uname().machine
    steps = [_Step(*step) for step in assemble(name, os.getpid())]
    program = _Program(len(steps), (_Step * len(steps))(*steps))
    libc = ctypes.CDLL(None, use_errno=True)
    # A positive answer names a thread that could not be taken along.
    return bool(libc.syscall(SECCOMP[name], _SET_FILTER, _ALL_THREADS, ctypes.byref(program)) == 0)


def assemble(machine: str, own: int) -> Iterator[Instruction]:
    """The filter for this machine and the process with this id: code, steps to skip if true, if false, value."""
    calls = by_argument(machine)
    yield _LOAD, 0, 0, _MACHINE
    yield _EQUAL, 1, 0, _AUDIT[machine]
    yield _ANSWER, 0, 0, _REFUSE
    yield _LOAD, 0, 0, _NUMBER
    yield _AT_LEAST, 0, 1, _FOREIGN
    yield _ANSWER, 0, 0, _REFUSE
    for number in refused(machine).values():
        yield from _on(number, [(_ANSWER, 0, 0, _REFUSE)])
    yield from _on(calls["clone3"], [(_ANSWER, 0, 0, _UNKNOWN)])
    yield from _on(calls["clone"], [_argument(0), (_HAS_BIT, 1, 0, _CLONE_THREAD), *_refuse_or_allow()])
    for name in ("kill", "tgkill"):  # only to this process: a library that aborts
        yield from _on(calls[name], _only(own, None))
    yield from _on(calls["setpriority"], _only(0, 0))  # only of this thread
    yield from _on(calls["prlimit64"], _only(0, None, 0))  # only to read the limits of this process
    yield from _on(calls["ioctl"], [_argument(1), *_none_of(_REFUSED_CONTROLS)])
    yield _ANSWER, 0, 0, _ALLOW


def _on(number: int, steps: Sequence[Instruction]) -> Iterator[Instruction]:
    """What happens to this call. The steps end with an answer: they may load something else than the call's number."""
    yield _EQUAL, 0, len(steps), number
    yield from steps


def _only(*wanted: int | None) -> list[Instruction]:
    """Allow the call if its first arguments are these; None: any. Only pointers are longer than four bytes."""
    steps: list[Instruction] = []
    for place, value in enumerate(wanted):
        for half in (0, 1) if place == _POINTER else (0,):
            if value is not None:
                steps += [_argument(place, half), (_EQUAL, 1, 0, value), (_ANSWER, 0, 0, _REFUSE)]
    return [*steps, (_ANSWER, 0, 0, _ALLOW)]


def _none_of(values: Sequence[int]) -> list[Instruction]:
    """Refuse what was loaded if it is one of these."""
    steps = [step for value in values for step in ((_EQUAL, 0, 1, value), (_ANSWER, 0, 0, _REFUSE))]
    return [*steps, (_ANSWER, 0, 0, _ALLOW)]


def _refuse_or_allow() -> list[Instruction]:
    return [(_ANSWER, 0, 0, _REFUSE), (_ANSWER, 0, 0, _ALLOW)]


def _argument(place: int, half: int = 0) -> Instruction:
    """Load four bytes of an argument; both machines store the low ones first."""
    return _LOAD, 0, 0, _ARGUMENTS + 8 * place + 4 * half
