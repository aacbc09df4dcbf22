"""The engine in the worker's own process, on a database that the worker reaches itself."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from telecine.engine import Engine
from telecine.errors import KeyInvalid
from telecine.facts import (
    Brief,
    HeldLease,
    KeptArtifact,
    Lease,
    LeaseOutcome,
    LogEntry,
    Millis,
    Mode,
    Orders,
    SettleReply,
    StoredArtifact,
    TaskId,
    WorkerId,
)
from telecine.worker_facts import NO_TOTALS, Registration, Totals

if TYPE_CHECKING:
    from telecine.worker.engine_api import EngineApi


class LocalEngine:
    """`EngineApi` on an `Engine`."""

    place = None

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    async def enlist(self, registration: Registration) -> WorkerId:
        return await self._engine.enlist(registration)

    async def claim(self, worker: WorkerId, request: str, lanes: Mapping[str, str], wanted: int) -> list[Lease]:
        return await self._engine.claim(worker, request, lanes, wanted)

    async def glance(self, lanes: Mapping[str, str]) -> bool:
        return await self._engine.glance(lanes)

    async def brief(self, lease: Lease) -> Brief:
        return await self._engine.brief(lease)

    async def artifacts(self, lease: Lease, stages: Sequence[str]) -> list[StoredArtifact]:
        return await self._engine.artifacts(lease, stages)

    async def published(self, lease: Lease) -> list[StoredArtifact]:
        return await self._engine.published(lease)

    async def beat(self, worker: WorkerId, held: Sequence[HeldLease], totals: Totals = NO_TOTALS) -> Orders:
        return await self._engine.beat(worker, held, totals)

    async def keep(self, task_id: TaskId, token: int, items: Sequence[KeptArtifact]) -> None:
        await self._engine.keep(task_id, token, items)

    async def log(self, lines: Sequence[LogEntry]) -> None:
        await self._engine.log(lines)

    async def settle(self, words: Sequence[LeaseOutcome]) -> list[SettleReply]:
        return await self._engine.settle(words)

    async def release(self, leases: Iterable[tuple[TaskId, int]], reason: str = "released") -> list[SettleReply]:
        return await self._engine.release(leases, reason)

    async def set_mode(self, worker: WorkerId, mode: Mode, *, revoke: bool = False) -> None:
        await self._engine.set_mode(worker, mode, revoke=revoke)

    async def retire(self, worker: WorkerId) -> None:
        await self._engine.retire(worker)

    async def sweep(self, period: Millis) -> int | None:
        return (await self._engine.sweep(period)).returned

    async def shut_out(self) -> KeyInvalid:
        """A worker with a database has no key: a worker that is revoked learns it from its next beat."""
        await asyncio.Event().wait()
        raise AssertionError("this event is never set")

    def hurry(self) -> None:
        """No claim waits here."""


if TYPE_CHECKING:

    def _is_an_engine_api(engine: LocalEngine) -> EngineApi:
        return engine
