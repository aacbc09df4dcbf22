"""How a handler gives the source to its media child: an open descriptor, or byte ranges on request."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from telecine.errors import MediaRefused
from telecine.flow import Bench
from telecine.flows.transcode.plan import Origin
from telecine.flows.transcode.reading import kept_by_fetch
from telecine.media.inputs import LocalFile, hash_file

MOVED = "moved_to"  # a fact of the video: where its source was seen last


@asynccontextmanager
async def opened(bench: Bench, origin: Origin) -> AsyncIterator[dict[str, Any]]:
    """What `bench.child` needs in order to read the source; a file in place must be the same before and after."""
    if origin.path is not None:
        file = await _same_bytes(bench, origin)
        handle = os.open(file.path, os.O_RDONLY)
        try:
            yield {"files": {"source": handle}}
            if LocalFile.at(file.path) != file:
                raise _changed(origin)
        finally:
            os.close(handle)
        return
    kept = await kept_by_fetch(bench, origin.artifact or "")
    path = bench.locate(kept)
    if path is None:

        async def read(start: int, length: int) -> bytes:
            return await bench.read(kept, start, length)

        yield {"source": read}
        return
    handle = os.open(path, os.O_RDONLY)
    try:
        yield {"files": {"source": handle}}
    finally:
        os.close(handle)


def identity_of(file: LocalFile) -> tuple[int, ...]:
    """What changes when somebody writes to a file or puts another in its place."""
    return (file.size, file.mtime_ns, file.inode)


async def _same_bytes(bench: Bench, origin: Origin) -> LocalFile:
    """The file that was indexed, also if it was only touched, or moved to where somebody found it again."""
    assert origin.path is not None
    moved = bench.brief.facts.get(MOVED)
    try:
        file = LocalFile.at(Path(origin.path))
    except MediaRefused:
        if moved is None:
            raise
        file = LocalFile.at(Path(moved))
    if str(file.path) == origin.path and identity_of(file) == origin.identity:
        return file
    known = (str(file.path), *identity_of(file))
    if known not in _HASHES and file.size == origin.size:
        _HASHES[known] = (await hash_file(file.path)).sha256
    if _HASHES.get(known) != origin.sha256:
        raise _changed(origin)
    return file


def _changed(origin: Origin) -> MediaRefused:
    return MediaRefused(
        f"the source {origin.path} was changed while it was being transcoded: submit it again", code="source_changed"
    )


# What files that do not look as they did were found to be: each chunk of a film asks.
_HASHES: dict[tuple[object, ...], str] = {}
