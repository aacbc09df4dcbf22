"""A `Scene` for tests of the engine itself: short words, and a look at the rows behind it."""

from __future__ import annotations

import random
from typing import Any

from telecine.engine import Engine
from telecine.facts import (
    Done,
    Fact,
    Failed,
    HeldLease,
    JobId,
    Lease,
    LeaseOutcome,
    Orders,
    Released,
    SettleReply,
    TaskId,
    WorkerId,
)
from telecine.store import Store
from telecine.store.open import open_store
from telecine.world import World
from tests.support.audit import audit
from tests.support.builders import NOW, Loaded
from tests.support.scene import Scene


class Bed(Scene):
    def __init__(self, url: str, store: Store) -> None:
        super().__init__(url, store)
        self.engine = Engine(store, world=World(dice=Loaded()))
        self.views = self.engine.queries
        self.guests: list[Store] = []
        store.now = NOW

    async def another_engine(self, **how: Any) -> Engine:
        """An engine of another process: connections and memory of its own."""
        store = open_store(self.url, dice=random.Random(2))
        store.now = self.store.now
        self.guests.append(store)
        return Engine(store, **{"world": World(dice=Loaded()), **how})

    async def close_guests(self) -> None:
        for store in self.guests:
            await store.close()

    def pass_time(self, ms: int) -> None:
        super().pass_time(ms)
        for store in self.guests:
            store.now = self.store.now

    # -- words ----------------------------------------------------------------------------------

    async def take(self, worker: WorkerId | None = None, **how: Any) -> Lease:
        """Claim exactly one task."""
        [lease] = await self.claim(1, worker, **how)
        return lease

    async def claim(self, wanted: int = 1, worker: WorkerId | None = None, request: str | None = None) -> list[Lease]:
        if request is None:
            return await super().claim(wanted, worker)
        return await self.engine.claim(self.worker if worker is None else worker, request, self.lanes, wanted)

    async def say(self, lease: Lease, fact: Fact) -> SettleReply:
        [answer] = await self.engine.settle([LeaseOutcome(lease.task_id, lease.token, fact)])
        return answer

    async def done(self, lease: Lease, **what: Any) -> SettleReply:
        return await self.say(lease, Done(**what))

    async def fail(self, lease: Lease, message: str = "no", **how: Any) -> SettleReply:
        return await self.say(lease, Failed(message, **how))

    async def release(self, lease: Lease) -> SettleReply:
        return await self.say(lease, Released())

    async def beaten(self, *leases: Lease, worker: WorkerId | None = None, progress: float | None = None) -> Orders:
        held = [HeldLease(task_id=lease.task_id, token=lease.token, progress=progress) for lease in leases]
        return await self.engine.beat(self.worker if worker is None else worker, held)

    async def lose(self, lease: Lease) -> None:
        """Let the lease run out and be swept, with sweeps often enough that nobody takes it for an outage."""
        row = await self.task(lease.task_id)
        until = row["lease_until"] or self.now
        while self.now < until:
            self.pass_time(min(5_000, until - self.now))
            await self.engine.sweep()
        self.pass_time(2_000)
        await self.engine.sweep()

    # -- rows -----------------------------------------------------------------------------------

    async def task(self, task_id: int) -> dict[str, Any]:
        [row] = await self.sql(f"select * from task where id = {task_id}")
        return row

    async def tasks(self, job_id: int) -> list[dict[str, Any]]:
        return await self.sql(f"select * from task where job_id = {job_id} order by stage, position")

    async def states(self, job_id: int) -> list[str]:
        return [row["state"] for row in await self.tasks(job_id)]

    async def job(self, job_id: int) -> dict[str, Any]:
        [row] = await self.sql(f"select * from job where id = {job_id}")
        return row

    async def status(self, job_id: int) -> str:
        return str((await self.job(job_id))["status"])

    async def stages(self, job_id: int) -> dict[str, str]:
        rows = await self.sql(f"select name, state from stage where job_id = {job_id} order by number")
        return {row["name"]: row["state"] for row in rows}

    async def attempts(self, task_id: int) -> list[dict[str, Any]]:
        return await self.sql(f"select * from attempt where task_id = {task_id} order by token")

    async def events(self, job_id: JobId | int) -> list[str]:
        """With a number or, in PostgreSQL, still without."""
        kinds = await self.sql(f"select kind from event where job_id = {job_id} order by seq")
        if self.is_postgres:
            fresh = f"select kind from unnumbered, unnest(job_ids) as x (job) where job = {job_id} order by id"
            kinds += await self.sql(fresh)
        return [row["kind"] for row in kinds]

    async def count(self, table: str, where: str = "true") -> int:
        [row] = await self.sql(f"select count(*) as n from {table} where {where}")
        return int(row["n"])

    async def audited(self) -> None:
        """Everything derived equals what it is derived from."""
        assert await audit(self.sql) == []


def named(leases: list[Lease]) -> list[tuple[str, int]]:
    return [(lease.stage, lease.position) for lease in leases]


def pairs(leases: list[Lease]) -> list[tuple[TaskId, int]]:
    return [(lease.task_id, lease.token) for lease in leases]
