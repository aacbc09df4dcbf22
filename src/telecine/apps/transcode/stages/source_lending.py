"""A source on a disk: this machine's own, or the server's, which lends it to workers that have no such disk."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from telecine.apps.transcode.names import MOVED
from telecine.errors import MediaRefused
from telecine.facts import Json, Lease
from telecine.flow import Bench
from telecine.media.inputs import LocalFile, hash_file, is_remote
from telecine.media.inputs.download import Progress, silent

WINDOW = 8 << 20


def identity_of(file: LocalFile) -> tuple[int, ...]:
    """What changes when somebody writes to a file or puts another in its place."""
    return (file.size, file.mtime_ns, file.inode)


async def file_at(bench: Bench, path: str) -> LocalFile:
    """The file as it is now; `MediaRefused` if it cannot be read."""
    lent = bench.lend()
    if lent is None:
        return LocalFile.at(Path(path))
    size, mtime_ns, inode = await lent.stat()
    return LocalFile(path=Path(path), size=size, mtime_ns=mtime_ns, inode=inode)


async def hashed(bench: Bench, file: LocalFile, told: Progress = silent) -> str:
    """Its SHA-256; the server computes that of a file which it lends."""
    lent = bench.lend()
    return (await hash_file(file.path, told)).sha256 if lent is None else await lent.digest(told)


async def borrow(bench: Bench, file: LocalFile, path: Path, told: Progress) -> None:
    """Bring a file that the server lends onto this disk."""
    lent = bench.lend()
    assert lent is not None
    with await asyncio.to_thread(path.open, "wb") as copy:
        for start in range(0, file.size, WINDOW):
            await asyncio.to_thread(copy.write, await lent.read(start, min(WINDOW, file.size - start)))
            told(min(start + WINDOW, file.size), file.size)
    if await file_at(bench, str(file.path)) != file:
        raise MediaRefused(
            f"the source {file.path} was changed while it was read: submit it again", code="source_changed"
        )


def lend(lease: Lease, facts: Mapping[str, Json]) -> tuple[Path, tuple[int, ...]] | None:
    """On the server: the file that a job's spec names, or where it was seen last; nothing else of this disk."""
    spec: Any = lease.spec if isinstance(lease.spec, dict) else {}
    source = spec.get("source")
    if not isinstance(source, str) or is_remote(source) or not source.startswith("/"):
        return None
    try:
        file = LocalFile.at(Path(source))
    except MediaRefused:
        moved = facts.get(MOVED)
        if not isinstance(moved, str):
            raise
        file = LocalFile.at(Path(moved))
    return file.path, identity_of(file)
