"""A source that lies on this machine: read in place, never copied, and it must stay as it is."""

from __future__ import annotations

import asyncio
import hashlib
import os
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from telecine.errors import MediaRefused
from telecine.media.inputs.download import Fetched, Progress, changed, silent

BLOCK = 4 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalFile:
    """A plain file, and what changes when somebody writes to it or puts another in its place."""

    path: Path
    size: int
    mtime_ns: int
    inode: int

    @classmethod
    def at(cls, path: Path) -> LocalFile:
        """`MediaRefused` if there is none, or a folder, or a pipe, which would wait for ever."""
        try:
            facts = os.stat(path)
        except (OSError, ValueError) as error:
            why = getattr(error, "strerror", None) or error
            raise MediaRefused(f"the source {path} cannot be read: {why}", code="source_missing") from error
        if not stat.S_ISREG(facts.st_mode):
            raise MediaRefused(f"the source {path} is not a plain file; give one", code="source_missing")
        if not facts.st_size:
            raise MediaRefused(f"the source {path} is empty", code="not_media")
        if not os.access(path, os.R_OK):
            raise MediaRefused(f"the source {path} may not be read; allow it to the worker", code="source_forbidden")
        return cls(path=path, size=facts.st_size, mtime_ns=facts.st_mtime_ns, inode=facts.st_ino)

    @property
    def shown(self) -> str:
        return str(self.path)

    def check_unchanged(self) -> None:
        """`MediaRefused` if it is not what it was."""
        if LocalFile.at(self.path) != self:
            raise changed(self.shown)


async def hash_file(path: Path, progress: Progress = silent) -> Fetched:
    """Size and SHA-256 of a file that stays as it is meanwhile."""
    before = LocalFile.at(path)
    digest, done = hashlib.sha256(), 0
    with path.open("rb") as file:
        while size := await asyncio.to_thread(_feed, file, digest):
            done += size
            progress(done, max(before.size, done))
    before.check_unchanged()
    return Fetched(done, digest.hexdigest())


def _feed(file: BinaryIO, digest: hashlib._Hash) -> int:
    block = file.read(BLOCK)
    digest.update(block)
    return len(block)
