"""Media children that need no start of their own: one process has loaded Python and FFmpeg, and forks for each order.

The same process as a worker has (`telecine.worker.media.fork_child`), asked without a loop.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from threading import Lock

from telecine.worker.media import fork_child


@dataclass(frozen=True)
class ForkedChild:
    """A child as whoever asked for it sees it."""

    handle: int
    report: socket.socket

    def kill(self) -> None:
        signal.pidfd_send_signal(self.handle, signal.SIGKILL)

    def wait(self, timeout: float) -> int:
        """Its exit code, or minus the signal that ended it."""
        self.report.settimeout(timeout)
        with self.report:
            status: int = json.loads(self.report.recv(256))["status"]
        os.close(self.handle)
        return os.waitstatus_to_exitcode(status)


class ForkServer:
    def __init__(self) -> None:
        self._asked = Lock()
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            program = ["-m", "telecine.worker.media.fork_child", "telecine.media.child"]
            command = [sys.executable, "-I", *program, str(theirs.fileno())]
            self.process = subprocess.Popen(
                command, env={}, stdin=subprocess.DEVNULL, pass_fds=[theirs.fileno()], start_new_session=True
            )
        self._line = ours

    def start(
        self, folder: Path, line: socket.socket, output: int, source: Path | None
    ) -> tuple[ForkedChild, dict[str, int]]:
        """A child, and what it knows its files by."""
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        request = json.dumps({"folder": str(folder), "nice": 0}).encode()
        with theirs, open(source or os.devnull, "rb") as file:
            given = [line.fileno(), output, theirs.fileno(), *([file.fileno()] if source else [])]
            with self._asked:
                socket.send_fds(self._line, [request], given)
        _, [handle], _, _ = socket.recv_fds(ours, 64, 1)
        return ForkedChild(handle, ours), {"source": fork_child.LINE + 1} if source else {}

    def close(self) -> None:
        """It ends when nobody can ask any more."""
        self._line.close()
        self.process.wait(timeout=60)


def start(
    folder: Path, line: socket.socket, output: int, source: Path | None
) -> tuple[subprocess.Popen[bytes], dict[str, int]]:
    """The same without a fork server: as a worker starts it."""
    with open(source or os.devnull, "rb") as file:
        files = {"source": file.fileno()} if source else {}
        process = subprocess.Popen(
            [sys.executable, "-I", "-m", "telecine.media.child", str(line.fileno())],
            cwd=folder, env={}, stdin=subprocess.DEVNULL, stdout=output, stderr=output,
            pass_fds=(line.fileno(), *files.values()), start_new_session=True,
        )  # fmt: skip
    return process, files
