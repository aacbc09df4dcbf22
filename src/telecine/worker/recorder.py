"""Checkpoints and artifacts: recorded under the fence, or the handler is told to stop."""

from __future__ import annotations

import asyncio
from pathlib import Path

from telecine.artifacts import Artifacts, key_of
from telecine.errors import BadSpec, HandlerStopped, LeaseLost, Rejected, StoreError
from telecine.facts import Json, Kept
from telecine.worker.held import Attempt
from telecine.worker.words import Words
from telecine.world import World

MOST_PAUSE = 2.0


class Recorder:
    def __init__(self, words: Words, world: World, artifacts: Artifacts | None) -> None:
        self._words = words
        self._world = world
        self._artifacts = artifacts

    async def checkpoint(self, attempt: Attempt, name: str, value: Json) -> None:
        await self._record(attempt, Kept(name=name, token=attempt.lease.token, value=value))

    async def keep(self, attempt: Attempt, name: str, path: Path, facts: dict[str, Json]) -> Kept:
        """Store the bytes whole, then record them: a record without its bytes cannot be."""
        if self._artifacts is None:
            raise BadSpec("this worker has no place for artifacts: set `artifacts` in its options")
        lease = attempt.lease
        place = (lease.job_id, f"{lease.stage}@{lease.version}", lease.position, lease.token)
        key = key_of(*place, name=name)
        stored = await self._artifacts.put(key, path)
        kept = Kept(name=name, token=lease.token, key=key, size=stored.size, sha256=stored.sha256, facts=facts)
        await self._record(attempt, kept)
        return kept

    async def _record(self, attempt: Attempt, item: Kept) -> None:
        pause = 0.05
        while not attempt.killed and attempt.life == "working":
            try:
                await self._words.keep(attempt.lease.task_id, attempt.lease.token, [item])
            except LeaseLost as error:
                raise HandlerStopped(str(error)) from error
            except Rejected:
                raise
            except StoreError:
                await asyncio.sleep(pause * (0.5 + self._world.dice.random()))
                pause = min(2 * pause, MOST_PAUSE)
            else:
                return
        raise HandlerStopped(f"task {attempt.lease.task_id}: the lease is gone, {item.name!r} was not recorded")
