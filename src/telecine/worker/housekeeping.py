"""Duties of the fleet that are in no hurry: the audit, retention, the bytes that nobody needs any more.

One process of the fleet does them at a time. A named lock says which; when it dies, another one takes over within
a minute. Nothing but tidiness depends on it: recovery (the sweep) needs no lock, and two housekeepers at once
would do each other no harm.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Sequence
from contextlib import aclosing, suppress

from telecine.artifacts import Artifacts
from telecine.engine import Engine
from telecine.engine.maintenance.retention import NOTHING, Ages, Retired
from telecine.errors import StoreError
from telecine.facts import MINUTE, SECOND, SWEEP, Millis
from telecine.locks import HeldLock, Locks
from telecine.plural import counted

log = logging.getLogger(__name__)

LOCK = "telecine/housekeeping"
TERM: Millis = MINUTE
LOOK_SECONDS = 15.0
RETIRE_SECONDS = 3_600.0


class Housekeeper:
    """Audits a batch at each look, drops versions that were replaced, deletes bytes that were freed; retires what is
    old at the first look and then every hour."""

    def __init__(
        self,
        engine: Engine,
        locks: Locks,
        *,
        name: str,
        artifacts: Artifacts,
        ages: Ages,
        tidy: Callable[[], Awaitable[int]] | None = None,
    ) -> None:
        """`tidy` frees what a flow no longer needs, a little at each look; it says how many files that were."""
        self._engine = engine
        self._world = engine.world
        self._locks = locks
        self._name = name
        self._artifacts = artifacts
        self._ages = ages
        self._tidy = tidy
        self._maintenance = engine.maintenance
        self._held: HeldLock | None = None
        self._retire_at = 0.0

    async def run(self) -> None:
        """Until cancelled; whatever goes wrong is said and tried again later."""
        try:
            while True:
                with self._engine.outages.at("housekeeping"):
                    await self.once()
                await asyncio.sleep(LOOK_SECONDS * (0.75 + 0.5 * self._world.dice.random()))
        finally:
            if self._held is not None:
                with suppress(StoreError):
                    await self._locks.release(self._held)

    async def once(self) -> None:
        """One look, if it is ours to do."""
        if not await self._is_mine():
            return
        found = await self._maintenance.audit_next()
        for finding in found.findings:
            log.error("audit: %s", finding.message)
        if self._world.mono() >= self._retire_at:
            self._retire_at = self._world.mono() + RETIRE_SECONDS
            await self._retire()
        else:
            _tell(await self._maintenance.retire_versions(self._ages.versions))
        _tell(await self._maintenance.archive_deleted_jobs(self._ages.versions))
        if ended := await self._maintenance.clear_deleted_subjects():
            log.info("cleared what was left of %s", counted(ended, "deleted subject"))
        if self._tidy is not None and (freed := await self._tidy()):
            log.info("freed %s of failed jobs", counted(freed, "file"))
        if deleted := await self._maintenance.delete_freed(ArtifactTrash(self._artifacts)):
            log.info("deleted %s no longer in use", counted(deleted, "file"))

    async def _is_mine(self) -> bool:
        if self._held is not None:
            self._held = await self._locks.refresh(self._held, TERM)
        if self._held is None:
            self._held = await self._locks.try_acquire(LOCK, TERM, self._name)
        return self._held is not None

    async def _retire(self) -> None:
        total = NOTHING
        async with aclosing(self._maintenance.retire(self._ages)) as batches:
            async for batch in batches:
                total += batch
                if not await self._is_mine():
                    break
        _tell(total)


class ArtifactTrash:
    """The place of artifacts, as whoever clears it sees it. What cannot be deleted now is tried again later."""

    def __init__(self, artifacts: Artifacts) -> None:
        self._artifacts = artifacts

    async def under(self, prefix: str) -> list[str]:
        return await self._artifacts.under(prefix)

    async def delete(self, keys: Sequence[str]) -> Collection[str]:
        failed = await self._artifacts.delete_many(keys)
        if failed:
            first = next(iter(failed.values()))
            log.warning("could not delete %s; the first: %s", counted(len(failed), "file"), first)
        return failed


def _tell(total: Retired) -> None:
    if not total:
        return
    deleted = (
        ("file", len(total.files)),
        ("version", total.versions),
        ("idempotency key", total.keys),
        ("event", total.events),
        ("log line", total.logs),
        ("worker", total.workers),
        ("deleted job", total.deleted),
        ("watched file", total.watched),
        ("expired key", total.secrets),
    )
    parts = [f"archived {counted(total.jobs, 'job')}"] if total.jobs else []
    if rest := [counted(count, noun) for noun, count in deleted if count]:
        parts.append(f"deleted {', '.join(rest)}")
    log.info("retention: %s", "; ".join(parts))


async def sweep_on(engine: Engine, period: Millis = SWEEP) -> None:
    """Recovery for whoever is no worker: a pass every `period`, jittered, for ever."""
    while True:
        with engine.outages.at("sweep"):
            await engine.sweep(period)
        await asyncio.sleep(period / SECOND * (0.75 + 0.5 * engine.world.dice.random()))
