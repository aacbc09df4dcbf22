"""How a handler gives the source to its media child: an open descriptor, or byte ranges on request."""

from __future__ import annotations

import os
import stat
from collections import OrderedDict, deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from telecine.apps.transcode.names import MOVED
from telecine.apps.transcode.plan import SourceLocation
from telecine.apps.transcode.stages.source_lending import file_at, hashed, identity_of
from telecine.apps.transcode.stages.stage_inputs import kept_by_fetch, missing
from telecine.errors import MediaRefused
from telecine.facts import KeptArtifact
from telecine.flow import Bench, Reader
from telecine.media.inputs import LocalFile

SOURCE = "source"
UPLOADED = "upload"
DOWNLOADED = "download"  # in the scratch folder of the attempt that fetches the source
AHEAD = 8 << 20
PLACES = 3


@asynccontextmanager
async def opened(bench: Bench, origin: SourceLocation) -> AsyncIterator[dict[str, Any]]:
    """What `bench.child` needs in order to read the source; a file in place must be the same before and after."""
    if origin.path is not None:
        async with _in_place(bench, origin, origin.path) as reading:
            yield reading
        return
    kept = uploaded(origin) if origin.upload else await kept_by_fetch(bench, origin.artifact or "")
    here = _here(bench, kept)
    if here is None:

        async def read(start: int, length: int) -> bytes:
            return await bench.read(kept, start, length)

        yield {"source": ReadAhead(read)}
        return
    try:
        yield {"files": {"source": here}}
    finally:
        os.close(here)


@asynccontextmanager
async def _in_place(bench: Bench, origin: SourceLocation, path: str) -> AsyncIterator[dict[str, Any]]:
    file, lent = await _same_bytes(bench, origin), bench.lend()
    if lent is not None:
        yield {"source": ReadAhead(lent.read)}
        if await file_at(bench, path) != file:
            raise _changed(origin)
        return
    handle = os.open(file.path, os.O_RDONLY)
    try:
        yield {"files": {"source": handle}}
        if LocalFile.at(file.path) != file:
            raise _changed(origin)
    finally:
        os.close(handle)


def uploaded(origin: SourceLocation) -> KeptArtifact:
    """An upload as what was kept before the job began: its key follows from its id, the rest the spec says."""
    key = f"uploads/{origin.upload}/source"
    return KeptArtifact(name=UPLOADED, token=0, key=key, size=origin.size, sha256=origin.sha256)


def _here(bench: Bench, kept: KeptArtifact) -> int | None:
    """The artifact as a file on this machine, if it is one, or was downloaded by this very attempt."""
    path = bench.locate(kept)
    if path is not None:
        try:
            return os.open(path, os.O_RDONLY)
        except FileNotFoundError:
            raise (gone() if kept.name == UPLOADED else missing(kept.name)) from None
    if kept.name != SOURCE:
        return None
    try:
        # A child that ran before may write here: never follow where it points.
        handle = os.open(bench.scratch / DOWNLOADED, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return None
    about = os.fstat(handle)
    if stat.S_ISREG(about.st_mode) and about.st_size == kept.size:
        return handle
    os.close(handle)
    return None


def gone() -> MediaRefused:
    return MediaRefused("the uploaded film is not there any more: upload it again", code="source_missing")


class ReadAhead:
    """Bytes from far away: who reads on where he read before gets more than he asked for, and need not ask again.

    Films are read at a few places in turn (pictures, sound), hence several blocks.
    """

    def __init__(self, read: Reader) -> None:
        self._read = read
        self._blocks: OrderedDict[int, bytes] = OrderedDict()
        self._ends: deque[int] = deque([0], maxlen=PLACES)

    async def __call__(self, start: int, length: int) -> bytes:
        found = self._held(start, length)
        if found is None:
            found = await self._read(start, max(length, AHEAD) if start in self._ends else length)
            if len(found) > length:
                self._blocks[start] = found
                if len(self._blocks) > PLACES:
                    self._blocks.popitem(last=False)
        if start in self._ends:
            self._ends.remove(start)
        self._ends.append(start + length)
        return found[:length]

    def _held(self, start: int, length: int) -> bytes | None:
        for at, block in self._blocks.items():
            if at <= start and start + length <= at + len(block):
                self._blocks.move_to_end(at)
                return block[start - at : start - at + length]
        return None


async def _same_bytes(bench: Bench, origin: SourceLocation) -> LocalFile:
    """The file that was indexed, also if it was only touched, or moved to where somebody found it again."""
    assert origin.path is not None
    moved = bench.brief.facts.get(MOVED)
    try:
        file = await file_at(bench, origin.path)
    except MediaRefused:
        if moved is None or bench.lend() is not None:  # the server has looked there, too
            raise
        file = LocalFile.at(Path(moved))
    if str(file.path) == origin.path and identity_of(file) == origin.identity:
        return file
    known = (str(file.path), *identity_of(file))
    if known not in _HASHES and file.size == origin.size:
        _HASHES[known] = await hashed(bench, file)
    if _HASHES.get(known) != origin.sha256:
        raise _changed(origin)
    return file


def _changed(origin: SourceLocation) -> MediaRefused:
    return MediaRefused(
        f"the source {origin.path} was changed while it was being transcoded: submit it again", code="source_changed"
    )


# What files that do not look as they did were found to be: each chunk of a film asks.
_HASHES: dict[tuple[object, ...], str] = {}
