"""Run something and say what it cost: wall time, CPU of the whole process tree, and how much memory it had at once."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

# In large pages, which encoders ask for, and some in small ones: several times what any of us needs.
TOUCH = """
import mmap, os
free = os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
large = mmap.mmap(-1, min(3 << 30, free // 4 >> 21 << 21), flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
large.madvise(mmap.MADV_HUGEPAGE)
for place in range(0, len(large), 4096):
    large[place] = 1
small = bytearray(b"x") * (1 << 28)
"""


@dataclass(frozen=True)
class Cost:
    wall: float
    cpu: float
    rss: int  # bytes, of the largest process of the tree

    def __add__(self, other: Cost) -> Cost:
        return Cost(self.wall + other.wall, self.cpu + other.cpu, max(self.rss, other.rss))

    def times(self, factor: float) -> Cost:
        return Cost(factor * self.wall, factor * self.cpu, self.rss)


def own_cpu() -> float:
    """Of this process so far, without its children."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


class DidNotWork(Exception):
    """A command failed; the message is the end of what it said."""


def touch_memory() -> float:
    """Use much memory for a moment; the CPU seconds that it took.

    A virtual machine gives back what nobody has used for two seconds. Who comes first then waits for it, in CPU time of
    his own, nearly a second for half a gigabyte: so nobody who is measured comes first.
    """
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, "-c", TOUCH], check=True)
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime - before.ru_utime - before.ru_stime


def run(command: Sequence[str | Path], *, environment: dict[str, str] | None = None) -> tuple[Cost, str]:
    """The cost and the output of a command; its children count as soon as it has waited for them."""
    with tempfile.TemporaryFile() as out:
        begun = time.monotonic()
        process = subprocess.Popen(list(map(str, command)), stdout=out, stderr=subprocess.STDOUT, env=environment)
        _, status, used = os.wait4(process.pid, 0)
        wall = time.monotonic() - begun
        process.returncode = os.waitstatus_to_exitcode(status)
        out.seek(0)
        said = out.read().decode(errors="replace")
    if process.returncode:
        raise DidNotWork(f"{Path(str(command[0])).name} ended with {process.returncode}: {said[-1000:]}")
    return Cost(wall, used.ru_utime + used.ru_stime, used.ru_maxrss * 1024), said
