"""The filter of system calls, run step by step for each machine: what it refuses, what it lets through."""

import errno
import struct
from typing import Any

import pytest

from telecine.media.child.sandbox import seccomp
from telecine.media.child.sandbox.syscalls import by_argument, refused

MACHINES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
OWN = 4242
ALLOW = 0x7FFF0000
REFUSE = 0x00050000 | errno.EACCES
# What every media child does all the time: read, write, mmap, futex, exit_group.
ORDINARY = {"x86_64": (0, 1, 9, 202, 231), "aarch64": (63, 64, 222, 98, 94)}
# From the kernel's tables; the names that were missing once.
KNOWN = {
    "x86_64": {"chmod": 90, "utimensat": 280, "setxattr": 188, "sched_setaffinity": 203, "shmget": 29, "chroot": 161},
    "aarch64": {"fchmodat": 53, "utimensat": 88, "setxattr": 5, "sched_setaffinity": 122, "shmget": 194, "chroot": 51},
}


def answer(machine: str, number: int, *arguments: int, audit: int | None = None) -> int:
    """Run the filter as the kernel does; its last word."""
    words = (*arguments, 0, 0, 0, 0, 0, 0)[:6]
    data = struct.pack("<IIQ6Q", number, audit or MACHINES[machine], 0, *words)
    steps = list(seccomp.assemble(machine, OWN))
    at = loaded = 0
    while True:
        code, yes, no, value = steps[at]
        at += 1
        if code == 0x20:
            (loaded,) = struct.unpack_from("<I", data, value)
        elif code == 0x06:
            return value
        else:
            is_true = {0x15: loaded == value, 0x35: loaded >= value, 0x45: bool(loaded & value)}[code]
            at += yes if is_true else no


@pytest.mark.parametrize("machine", MACHINES)
def test_every_call_of_the_list_is_refused(machine: str) -> None:
    assert {answer(machine, number) for number in refused(machine).values()} == {REFUSE}
    assert KNOWN[machine].items() <= refused(machine).items()


@pytest.mark.parametrize("machine", MACHINES)
def test_ordinary_calls_go_through(machine: str) -> None:
    assert {answer(machine, number) for number in ORDINARY[machine]} == {ALLOW}


@pytest.mark.parametrize("machine", MACHINES)
def test_another_machine_and_the_second_table_are_refused(machine: str) -> None:
    assert answer(machine, ORDINARY[machine][0], audit=0x40000003) == REFUSE
    assert answer(machine, ORDINARY[machine][0] | 0x40000000) == REFUSE


@pytest.mark.parametrize("machine", MACHINES)
def test_what_is_for_this_process_alone_is_allowed(machine: str) -> None:
    calls = by_argument(machine)
    cases: dict[tuple[Any, ...], int] = {
        ("kill", OWN, 6): ALLOW,
        ("kill", 1, 9): REFUSE,
        ("kill", 0, 9): REFUSE,
        ("kill", (1 << 32) - 1, 9): REFUSE,
        ("tgkill", OWN, 7, 6): ALLOW,
        ("tgkill", 1, 1, 6): REFUSE,
        ("setpriority", 0, 0, 10): ALLOW,
        ("setpriority", 0, OWN - 1, 10): REFUSE,
        ("setpriority", 1, 0, 10): REFUSE,
        ("prlimit64", 0, 3, 0, 0x7FFF00001000): ALLOW,
        ("prlimit64", 0, 3, 0x7FFF00001000, 0): REFUSE,
        ("prlimit64", 0, 3, 0x7FFF00000000, 0): REFUSE,
        ("prlimit64", OWN - 1, 3, 0, 0x7FFF00001000): REFUSE,
        ("ioctl", 0, 0x5401): ALLOW,
        ("ioctl", 0, 0x5412): REFUSE,
        ("ioctl", 5, 0x40086602): REFUSE,
        ("clone", 0x10000): ALLOW,
        ("clone", 17): REFUSE,
        ("clone3", 0): 0x00050000 | errno.ENOSYS,
    }

    found = {case: answer(machine, calls[case[0]], *case[1:]) for case in cases}

    assert found == cases


def test_the_filter_is_short_enough_for_the_kernel() -> None:
    for machine in MACHINES:
        steps = list(seccomp.assemble(machine, OWN))
        assert len(steps) < 4096
        assert all(0 <= yes < 256 and 0 <= no < 256 for _, yes, no, _ in steps)
