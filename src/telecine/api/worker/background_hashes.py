"""Hashes of large files: computed once, in the background; whoever asks is told how far it is."""

from __future__ import annotations

import asyncio
import hashlib
import os
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Hashable
from dataclasses import dataclass
from pathlib import Path

from telecine.artifacts import Moved, Stored
from telecine.errors import Conflict
from telecine.wire.responses import DigestResponse

MAX_KNOWN = 1_000
AT_ONCE = 2
BLOCK = 4 << 20

Work = Callable[[Moved], Awaitable[Stored]]


@dataclass(slots=True)
class _Hash:
    size: int
    done: int = 0
    task: asyncio.Task[Stored] | None = None


class BackgroundHashes:
    def __init__(self) -> None:
        self._known: OrderedDict[Hashable, _Hash] = OrderedDict()
        self._turns = asyncio.Semaphore(AT_ONCE)

    async def of(self, what: Hashable, size: int, work: Work, wait: float) -> DigestResponse:
        """What these bytes hash to, if that is known within `wait` seconds. Something that failed is begun anew."""
        one = self._known.get(what)
        if one is None:
            one = self._known[what] = _Hash(size)
            one.task = asyncio.create_task(self._run(one, work), name="hash")
        self._known.move_to_end(what)
        assert one.task is not None
        await asyncio.wait({one.task}, timeout=wait)
        if not one.task.done():
            return DigestResponse(size=one.size, done=one.done)
        try:
            stored = one.task.result()
        except BaseException:
            self._known.pop(what, None)
            raise
        self._forget()
        return DigestResponse(size=stored.size, sha256=stored.sha256, done=stored.size)

    async def _run(self, one: _Hash, work: Work) -> Stored:
        def moved(done: int, of: int) -> None:
            one.done = done

        async with self._turns:
            return await work(moved)

    def _forget(self) -> None:
        while len(self._known) > MAX_KNOWN:
            oldest, one = next(iter(self._known.items()))
            if one.task is not None and not one.task.done():
                return
            del self._known[oldest]


async def hash_source(path: Path, identity: tuple[int, ...], moved: Moved) -> Stored:
    """Of a file on this disk that stays as it is meanwhile."""
    return await asyncio.to_thread(_hash, path, identity, moved)


def _hash(path: Path, identity: tuple[int, ...], moved: Moved) -> Stored:
    digest, done = hashlib.sha256(), 0
    with path.open("rb") as file:
        while block := file.read(BLOCK):
            digest.update(block)
            done += len(block)
            moved(done, done)
        about = os.fstat(file.fileno())
    if (about.st_size, about.st_mtime_ns, about.st_ino) != tuple(identity):
        raise Conflict("the source was changed while it was being read: submit it again when it stays as it is")
    return Stored(done, digest.hexdigest())
