"""Checkpoints and artifacts: recorded under the fence, or the handler is told to stop; and found again."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

from telecine.artifacts import Artifacts, Stored, key_of
from telecine.errors import ArtifactDamaged, BadSpec, HandlerStopped, LeaseLost, NotFound, Rejected, StoreError
from telecine.facts import Json, Kept, Shelved
from telecine.worker.held import Attempt, Held
from telecine.worker.moving import Moving
from telecine.worker.scratch import Scratch
from telecine.worker.words import Words
from telecine.world import World

MOST_PAUSE = 2.0

T = TypeVar("T")


class Recorder:
    def __init__(self, words: Words, world: World, artifacts: Artifacts | None) -> None:
        self._words = words
        self._world = world
        self._artifacts = artifacts
        self.mono = world.mono

    async def checkpoint(self, attempt: Attempt, name: str, value: Json) -> None:
        await self._record(attempt, Kept(name=name, token=attempt.lease.token, value=value))

    async def keep(self, attempt: Attempt, name: str, path: Path, facts: dict[str, Json]) -> Kept:
        """Store the bytes whole, then record them: a record without its bytes cannot be."""
        lease = attempt.lease
        place = (lease.job_id, f"{lease.stage}@{lease.version}", lease.position, lease.token)
        key = key_of(*place, name=name)
        with self._moving(attempt) as moved:
            stored = await self._place.put(key, path, moved)
        kept = Kept(name=name, token=lease.token, key=key, size=stored.size, sha256=stored.sha256, facts=facts)
        await self._record(attempt, kept)
        return kept

    async def _record(self, attempt: Attempt, item: Kept) -> None:
        lease = attempt.lease
        await self._insist(attempt, item.name, lambda: self._words.keep(lease.task_id, lease.token, [item]))

    # -- what is there -----------------------------------------------------------------------------

    async def artifacts(self, attempt: Attempt, stages: Sequence[str]) -> list[Shelved]:
        return await self._insist(attempt, "artifacts", lambda: self._words.artifacts(attempt.lease, stages))

    async def published(self, attempt: Attempt) -> list[Shelved]:
        return await self._insist(attempt, "published", lambda: self._words.published(attempt.lease))

    async def intact(self, attempt: Attempt, held: Held, kept: Kept, check: bool) -> bool:
        """Are the bytes there, in full size, and with `check` the same? A warning says what is not."""
        key = _key(kept)
        try:
            found = (
                await self._digest(attempt, key) if check else Stored(await self._place.stat(key), kept.sha256 or "")
            )
        except NotFound:
            held.line(attempt, f"{kept.name} was kept, and its bytes are gone", "warning", data={"key": key})
            return False
        if found != Stored(kept.size or 0, kept.sha256 or ""):
            held.line(attempt, f"{kept.name} was kept, and its bytes have changed", "warning", data={"key": key})
            return False
        return True

    async def fetch(self, attempt: Attempt, scratch: Scratch, kept: Kept) -> Path:
        """The bytes as a file, hashed once for each attempt; in a local folder, the artifact itself."""
        key = _key(kept)
        known = attempt.fetched.get(key)
        if known is not None:
            return known
        path = self.locate(kept)
        if path is not None:
            found = await self._digest(attempt, key)
        else:
            path = scratch.fetched(attempt.key, f"{self._world.new_id()}{Path(key).suffix}")
            with self._moving(attempt) as moved:
                found = await self._place.get(key, path, moved)
        if found != Stored(kept.size or 0, kept.sha256 or ""):
            raise ArtifactDamaged(f"artifact {key!r} is not what was recorded: {found.size} bytes, another hash")
        attempt.fetched[key] = path
        return path

    async def _digest(self, attempt: Attempt, key: str) -> Stored:
        with self._moving(attempt) as moved:
            return await self._place.digest(key, moved)

    @contextmanager
    def _moving(self, attempt: Attempt) -> Iterator[Moving]:
        """While bytes move, the attempt is alive; when nobody waits for them any more, they stop."""
        moving = Moving(attempt, self.mono)
        try:
            yield moving
        finally:
            moving.over = True

    async def read(self, kept: Kept, start: int, length: int | None) -> bytes:
        return await self._place.read(_key(kept), start, length, size=kept.size)

    def locate(self, kept: Kept) -> Path | None:
        return self._place.path(_key(kept))

    @property
    def folder(self) -> Path | None:
        """The folder of all artifacts, if there is one on this machine."""
        return None if self._artifacts is None else self._artifacts.folder

    @property
    def _place(self) -> Artifacts:
        if self._artifacts is None:
            raise BadSpec("this worker has no place for artifacts: set `artifacts` in its options")
        return self._artifacts

    async def _insist(self, attempt: Attempt, what: str, ask: Callable[[], Awaitable[T]]) -> T:
        """Until the database answers, or the lease is gone."""
        pause = 0.05
        while not attempt.killed and attempt.life == "working":
            try:
                return await ask()
            except LeaseLost as error:
                raise HandlerStopped(str(error)) from error
            except Rejected:
                raise
            except StoreError:
                await asyncio.sleep(pause * (0.5 + self._world.dice.random()))
                pause = min(2 * pause, MOST_PAUSE)
        raise HandlerStopped(f"task {attempt.lease.task_id}: the lease is gone, {what!r} was not recorded or read")


def _key(kept: Kept) -> str:
    if kept.key is None:
        raise BadSpec(f"{kept.name!r} is a checkpoint: it has a value, and no bytes")
    return kept.key
