"""Media children that need no start of their own: one process has loaded Python and FFmpeg, and forks for each order.

A child takes a quarter of a second to load what it is made of, and tests start hundreds. Whatever it does with its
order happens in the forked process, behind the same walls; what starts a child in earnest has tests of its own.

    tests ── the child's folder; its line, its output, its report, its source ──▶ nursery ──forks──▶ child
          ◀───────────────── its process id, and how it ended ───────────────────
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from threading import Lock

LINE, SOURCE = 3, 4  # what a forked child knows its descriptors by
_HIGH = 100  # above all that a child is given
_NOTE = 8  # bytes of a number in a report


@dataclass(frozen=True)
class Forked:
    """A child as whoever asked for it sees it."""

    pid: int
    report: socket.socket

    def kill(self) -> None:
        os.kill(self.pid, signal.SIGKILL)

    def wait(self, timeout: float) -> int:
        """Its exit code, or minus the signal that ended it."""
        self.report.settimeout(timeout)
        with self.report:
            return os.waitstatus_to_exitcode(_told(self.report))


class Nursery:
    def __init__(self) -> None:
        self._asked = Lock()
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            command = [sys.executable, "-I", __file__, str(theirs.fileno())]
            self.process = subprocess.Popen(
                command, env={}, stdin=subprocess.DEVNULL, pass_fds=[theirs.fileno()], start_new_session=True
            )
        self._line = ours

    def start(
        self, folder: Path, line: socket.socket, output: int, source: Path | None
    ) -> tuple[Forked, dict[str, int]]:
        """A child, and what it knows its files by."""
        ours, theirs = socket.socketpair()
        with theirs, open(source or os.devnull, "rb") as file:
            given = [line.fileno(), output, theirs.fileno(), *([file.fileno()] if source else [])]
            with self._asked:
                socket.send_fds(self._line, [os.fsencode(folder)], given)
        return Forked(_told(ours), ours), {"source": SOURCE} if source else {}

    def close(self) -> None:
        """It ends when nobody can ask any more."""
        self._line.close()
        self.process.wait(timeout=60)


def start(
    folder: Path, line: socket.socket, output: int, source: Path | None
) -> tuple[subprocess.Popen[bytes], dict[str, int]]:
    """The same without a nursery: as a worker starts it."""
    with open(source or os.devnull, "rb") as file:
        files = {"source": file.fileno()} if source else {}
        process = subprocess.Popen(
            [sys.executable, "-I", "-m", "telecine.media.child", str(line.fileno())],
            cwd=folder, env={}, stdin=subprocess.DEVNULL, stdout=output, stderr=output,
            pass_fds=(line.fileno(), *files.values()), start_new_session=True,
        )  # fmt: skip
    return process, files


def _told(report: socket.socket) -> int:
    if len(note := report.recv(_NOTE)) < _NOTE:
        raise AssertionError("the nursery ended")
    return int.from_bytes(note)


# --- in the nursery ------------------------------------------------------------------------------------------------


def _serve(asked: socket.socket) -> None:
    """Fork for whoever asks, and tell how each child ended, until nobody can ask any more."""
    import select

    woken, wake = os.pipe()
    os.set_blocking(woken, False)
    os.set_blocking(wake, False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(wake)
    reports: dict[int, socket.socket] = {}
    while True:
        ready, _, _ = select.select([asked, woken], [], [])
        if woken in ready:
            os.read(woken, 4096)
            _bury(reports)
        if asked not in ready:
            continue
        folder, given, _, _ = socket.recv_fds(asked, 4096, 8)
        if not given:
            return
        report = socket.socket(fileno=given.pop(2))
        if (pid := os.fork()) == 0:
            _be_born(os.fsdecode(folder), given)
        for one in given:
            os.close(one)
        reports[pid] = report
        report.send(pid.to_bytes(_NOTE))


def _bury(reports: dict[int, socket.socket]) -> None:
    while reports:
        pid, status = os.waitpid(-1, os.WNOHANG)
        if pid == 0:
            return
        with reports.pop(pid) as report:
            report.send(status.to_bytes(_NOTE))


def _be_born(folder: str, given: Sequence[int]) -> None:
    """From here on it is a child like any other: a folder, its descriptors, and nothing that is not its own."""
    from telecine.media.child.__main__ import main

    code = 1
    try:
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        os.setsid()
        os.chdir(folder)
        _place(given)
        code = main([str(LINE)])
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def _place(given: Sequence[int]) -> None:
    import fcntl

    line, output, *source = (fcntl.fcntl(one, fcntl.F_DUPFD, _HIGH) for one in given)
    for one, place in ((output, 1), (output, 2), (line, LINE), *((one, SOURCE) for one in source)):
        os.dup2(one, place)
    os.closerange(SOURCE + len(source), 4096)


def _load() -> None:
    """What every child loads whatever its order is; the rest it loads itself, as always."""
    import gc

    import av

    import telecine.media.child.__main__

    assert av.library_versions
    assert telecine.media.child.__main__.main
    gc.freeze()


if __name__ == "__main__":
    _load()
    _serve(socket.socket(fileno=int(sys.argv[1])))
