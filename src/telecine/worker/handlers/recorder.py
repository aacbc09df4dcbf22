"""Checkpoints and artifacts: recorded under the fence, or the handler is told to stop; and found again."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TypeVar

from telecine.artifacts import Stored
from telecine.errors import ArtifactDamaged, BadSpec, NotFound
from telecine.facts import Json, KeptArtifact, StoredArtifact
from telecine.flow import LentSource
from telecine.worker.artifact_place import ArtifactPlace
from telecine.worker.attempts import Attempt, HeldAttempts
from telecine.worker.current import about
from telecine.worker.engine_api import EngineApi
from telecine.worker.handlers.scratch import Scratch
from telecine.worker.handlers.transfer_progress import TransferProgress
from telecine.worker.retry_while_leased import through_bucket_outage, while_held
from telecine.world import World

log = logging.getLogger(__name__)

T = TypeVar("T")


class Recorder:
    def __init__(self, engine: EngineApi, world: World, place: ArtifactPlace | None) -> None:
        self._engine = engine
        self._world = world
        self._where = place
        self.mono = world.mono

    async def checkpoint(self, attempt: Attempt, name: str, value: Json) -> None:
        await self._record(attempt, KeptArtifact(name=name, token=attempt.lease.token, value=value))

    async def keep(
        self, attempt: Attempt, name: str, path: Path, facts: dict[str, Json], sha256: str | None = None
    ) -> KeptArtifact:
        """Store the bytes whole, then record them: a record without its bytes cannot be."""
        with self._moving(attempt) as moved:
            put = partial(self._place.put, attempt, name, path, moved, sha256)
            key, stored = await self._through_outage(attempt, name, put)
        token = attempt.lease.token
        kept = KeptArtifact(name=name, token=token, key=key, size=stored.size, sha256=stored.sha256, facts=facts)
        await self._record(attempt, kept)
        return kept

    async def _record(self, attempt: Attempt, item: KeptArtifact) -> None:
        lease = attempt.lease
        await while_held(attempt, self._world, item.name, lambda: self._engine.keep(lease.task_id, lease.token, [item]))

    # -- what is there -----------------------------------------------------------------------------

    async def artifacts(self, attempt: Attempt, stages: Sequence[str]) -> list[StoredArtifact]:
        return await while_held(
            attempt, self._world, "artifacts", lambda: self._engine.artifacts(attempt.lease, stages)
        )

    async def published(self, attempt: Attempt) -> list[StoredArtifact]:
        return await while_held(attempt, self._world, "published", lambda: self._engine.published(attempt.lease))

    async def intact(self, attempt: Attempt, held: HeldAttempts, kept: KeptArtifact, check: bool) -> bool:
        """Are the bytes there, in full size, and with `check` the same? A warning says what is not."""
        key = _key(kept)
        try:
            found = (
                await self._digest(attempt, key) if check else Stored(await self._stat(attempt, key), kept.sha256 or "")
            )
        except NotFound:
            held.line(attempt, f"{kept.name} was kept, and its bytes are gone", "warning", data={"key": key})
            return False
        if found != Stored(kept.size or 0, kept.sha256 or ""):
            held.line(attempt, f"{kept.name} was kept, and its bytes have changed", "warning", data={"key": key})
            return False
        return True

    async def fetch(self, attempt: Attempt, scratch: Scratch, kept: KeptArtifact) -> Path:
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
                found = await self._through_outage(attempt, key, partial(self._place.get, attempt, key, path, moved))
        if found != Stored(kept.size or 0, kept.sha256 or ""):
            raise ArtifactDamaged(f"artifact {key!r} is not what was recorded: {found.size} bytes, another hash")
        attempt.fetched[key] = path
        return path

    async def _digest(self, attempt: Attempt, key: str) -> Stored:
        with self._moving(attempt) as moved:
            return await self._through_outage(attempt, key, partial(self._place.digest, attempt, key, moved))

    async def _stat(self, attempt: Attempt, key: str) -> int:
        return await self._through_outage(attempt, key, partial(self._place.stat, attempt, key))

    async def _through_outage(self, attempt: Attempt, what: str, ask: Callable[[], Awaitable[T]]) -> T:
        """A bucket may be away for a while. A folder of this machine is not waited for: its errors stay."""
        if self.folder is not None:
            return await ask()

        def wait(error: Exception) -> None:
            log.warning(
                "task %s waits for the artifact store: %s", attempt.lease.task_id, error, extra=about(attempt.lease)
            )

        return await through_bucket_outage(self._world, ask, wait)

    @contextmanager
    def _moving(self, attempt: Attempt) -> Iterator[TransferProgress]:
        """While bytes move, the attempt is alive; when nobody waits for them any more, they stop."""
        moving = TransferProgress(attempt, self.mono)
        try:
            yield moving
        finally:
            moving.over = True

    async def read(self, attempt: Attempt, kept: KeptArtifact, start: int, length: int | None) -> bytes:
        key = _key(kept)
        read = partial(self._place.read, attempt, key, start, length, kept.size)
        return await self._through_outage(attempt, key, read)

    def lend(self, attempt: Attempt) -> LentSource | None:
        return None if self._where is None else self._where.lend(attempt)

    def locate(self, kept: KeptArtifact) -> Path | None:
        return self._place.path(_key(kept))

    @property
    def folder(self) -> Path | None:
        """The folder of all artifacts, if there is one on this machine."""
        return None if self._where is None else self._where.folder

    @property
    def _place(self) -> ArtifactPlace:
        if self._where is None:
            raise BadSpec("this worker has no place for artifacts: set `artifacts` in its options")
        return self._where


def _key(kept: KeptArtifact) -> str:
    if kept.key is None:
        raise BadSpec(f"{kept.name!r} is a checkpoint: it has a value, and no bytes")
    return kept.key
