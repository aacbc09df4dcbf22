"""System calls that a child has no use for, refused by a filter in the kernel.

Landlock and an empty network leave one way out: a socket that has a path, such as a database's or a container engine's.
So there is no new socket here, no connection, no other program, no process; only threads. io_uring goes, too: what it
does, no filter sees.
"""

from __future__ import annotations

import ctypes
import errno
import os
from collections.abc import Iterator
from dataclasses import dataclass

from telecine.media.layers import SECCOMP, seccomp_is_offered

_SET_FILTER = 1
_ALL_THREADS = 1  # of this process, and not only the one that asks
_CLONE_THREAD = 0x10000
_FOREIGN = 0x40000000  # x86_64 has a second table of calls from here on

# Where the kernel puts what it asks the filter about: the call's number, the machine, the first argument.
_NUMBER, _MACHINE, _FIRST_ARGUMENT = 0, 4, 16
_LOAD, _EQUAL, _AT_LEAST, _HAS_BIT, _ANSWER = 0x20, 0x15, 0x35, 0x45, 0x06
_ALLOW, _ERRNO = 0x7FFF0000, 0x00050000
_REFUSE = _ERRNO | errno.EACCES
_UNKNOWN = _ERRNO | errno.ENOSYS  # the C library then takes the older call, whose flags can be read


@dataclass(frozen=True, slots=True, kw_only=True)
class _Machine:
    """The kernel's numbers on one kind of machine."""

    audit: int
    clone: int
    refused: tuple[int, ...]


_CLONE3 = 435
_EVERYWHERE = (425, 426, 427, 438)  # io_uring_setup, _enter, _register; pidfd_getfd
_MACHINES = {
    "x86_64": _Machine(
        audit=0xC000003E,
        clone=56,
        refused=(
            *(41, 42, 49, 50, 53),  # socket, connect, bind, listen, socketpair
            *(57, 58, 59, 322),  # fork, vfork, execve, execveat
            *(101, 310, 311),  # ptrace, process_vm_readv, process_vm_writev
            *(165, 272, 308),  # mount, unshare, setns
            *(248, 249, 250, 298, 304, 321, 323),  # keys, perf events, file handles, bpf, userfaultfd
        ),
    ),
    "aarch64": _Machine(
        audit=0xC00000B7,
        clone=220,
        refused=(
            *(198, 203, 200, 201, 199),
            *(221, 281),
            *(117, 270, 271),
            *(40, 97, 268),
            *(217, 218, 219, 241, 265, 280, 282),
        ),
    ),
}


class _Step(ctypes.Structure):
    _fields_ = (("code", ctypes.c_uint16), ("yes", ctypes.c_uint8), ("no", ctypes.c_uint8), ("value", ctypes.c_uint32))


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_uint16), ("steps", ctypes.POINTER(_Step)))


def restrict() -> bool:
    """Refuse them from here on, in all threads. False: not on this machine. Needs `no_new_privileges`."""
    if not seccomp_is_offered():
        return False
    name = os.uname().machine
    steps = list(_steps(_MACHINES[name]))
    program = _Program(len(steps), (_Step * len(steps))(*steps))
    libc = ctypes.CDLL(None, use_errno=True)
    # A positive answer names a thread that could not be taken along.
    return bool(libc.syscall(SECCOMP[name], _SET_FILTER, _ALL_THREADS, ctypes.byref(program)) == 0)


def _steps(machine: _Machine) -> Iterator[_Step]:
    """The filter. `yes` and `no` say how many steps to skip."""
    yield _Step(_LOAD, 0, 0, _MACHINE)
    yield _Step(_EQUAL, 1, 0, machine.audit)
    yield _Step(_ANSWER, 0, 0, _REFUSE)
    yield _Step(_LOAD, 0, 0, _NUMBER)
    yield _Step(_AT_LEAST, 0, 1, _FOREIGN)
    yield _Step(_ANSWER, 0, 0, _REFUSE)
    for number in (*machine.refused, *_EVERYWHERE):
        yield _Step(_EQUAL, 0, 1, number)
        yield _Step(_ANSWER, 0, 0, _REFUSE)
    yield _Step(_EQUAL, 0, 1, _CLONE3)
    yield _Step(_ANSWER, 0, 0, _UNKNOWN)
    yield _Step(_EQUAL, 0, 3, machine.clone)
    yield _Step(_LOAD, 0, 0, _FIRST_ARGUMENT)
    yield _Step(_HAS_BIT, 1, 0, _CLONE_THREAD)
    yield _Step(_ANSWER, 0, 0, _REFUSE)
    yield _Step(_ANSWER, 0, 0, _ALLOW)
