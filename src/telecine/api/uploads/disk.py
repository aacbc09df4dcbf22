"""Bytes of unfinished uploads: one file each, named by its id, in a folder that is ours alone.

Whoever works on an upload holds the lock of its file. The kernel gives that back when a process dies, so a server that
was killed leaves nothing to wait for. Two servers may share the folder; each may have its own as well, if requests for
one upload reach the server that has it.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Lock
from types import TracebackType
from typing import Any

from telecine.errors import NoSpace, TelecineError, is_full
from telecine.private_files import make_private_folder

BLOCK = 4 << 20
NAME = re.compile("[0-9a-f]{32}")
NO_SPACE = "the disk is full: free some space, then go on with this upload"


class UploadBusy(TelecineError):
    code = "locked"


class UploadLost(TelecineError):
    code = "lost"


class UploadDisk:
    """The folder. All of it waits for the disk: call it in a thread."""

    def __init__(self, folder: Path, reserve: int) -> None:
        self._folder = folder.absolute()
        self._reserve = reserve

    def room(self) -> int:
        """Bytes that uploads may still take."""
        make_private_folder(self._folder)
        return shutil.disk_usage(self._folder).free - self._reserve

    def path(self, upload_id: str) -> Path:
        assert NAME.fullmatch(upload_id), "names are ours, never the sender's"
        return self._folder / upload_id

    def open(self, upload_id: str, *, create: bool) -> UploadFile:
        """The file, locked. `UploadBusy` if somebody else works on it, `UploadLost` if it is not here."""
        make_private_folder(self._folder)
        path = self.path(upload_id)
        flags = os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK | (os.O_CREAT if create else 0)
        try:
            handle = os.open(path, flags, 0o600)
        except OSError as error:
            if is_full(error):
                raise NoSpace(NO_SPACE) from error
            raise UploadLost(f"the bytes of upload {upload_id} are not here: {error.strerror}") from error
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            facts = os.fstat(handle)
            if not facts.st_nlink:  # deleted between the two calls
                raise BlockingIOError
            if not stat.S_ISREG(facts.st_mode):
                raise UploadLost(f"{path} is not a plain file")
        except BlockingIOError:
            os.close(handle)
            raise UploadBusy(
                f"somebody else sends upload {upload_id} just now; ask for its offset and go on then"
            ) from None
        except BaseException:
            os.close(handle)
            raise
        return UploadFile(handle, path)

    def unlink(self, upload_id: str) -> None:
        self.path(upload_id).unlink(missing_ok=True)

    def names(self) -> list[str]:
        """The uploads that have a file here."""
        with suppress(FileNotFoundError):
            return sorted(name for name in os.listdir(self._folder) if NAME.fullmatch(name))
        return []


class UploadFile:
    """An open file that nobody else writes to. What `write` took is safe after `sync`.

    Each call has the file for itself: one that was left alone in its thread ends before the file is closed.
    """

    def __init__(self, handle: int, path: Path) -> None:
        self._handle = handle
        self._turn = Lock()
        self._closed = False
        self.path = path
        self.hashes: list[Any] = []  # fed with what is written

    def cut(self, size: int) -> None:
        """Forget what came after `size`: nobody was told that it had arrived."""
        with self._mine() as handle:
            have = os.fstat(handle).st_size
            if have < size:
                raise UploadLost(f"of {size} bytes that had come only {have} are here; begin a new upload")
            os.ftruncate(handle, size)
            os.lseek(handle, size, os.SEEK_SET)

    def write(self, block: bytes) -> None:
        with self._mine() as handle:
            left = memoryview(block)
            while left:
                left = left[os.write(handle, left) :]
            for one in self.hashes:
                one.update(block)

    def sync(self, *, name: bool = False) -> None:
        """Flush the bytes; with `name`, the file's name too, so that a power cut takes neither away."""
        with self._mine() as handle:
            os.fsync(handle)
        if name:
            folder = os.open(self.path.parent, os.O_RDONLY)
            try:
                os.fsync(folder)
            finally:
                os.close(folder)

    def sha256(self) -> str:
        digest, at = hashlib.sha256(), 0
        while True:
            with self._mine() as handle:
                block = os.pread(handle, BLOCK, at)
            if not block:
                return digest.hexdigest()
            digest.update(block)
            at += len(block)

    def close(self) -> None:
        with self._turn:
            self._closed = True
            os.close(self._handle)

    @contextmanager
    def _mine(self) -> Iterator[int]:
        with self._turn:
            if self._closed:
                raise UploadLost("nobody waits for these bytes any more")
            try:
                yield self._handle
            except OSError as error:
                if is_full(error):
                    raise NoSpace(NO_SPACE) from error
                raise UploadLost(f"{self.path.name} cannot be written: {error.strerror}") from error

    def __enter__(self) -> UploadFile:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()
