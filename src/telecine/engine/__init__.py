"""The engine: every transaction that Telecine runs on its database, by subject.

`engine.jobs`, `engine.subjects`, `engine.queries`, `engine.events`, `engine.keys`, `engine.deliveries`,
`engine.counters` and `engine.maintenance` are for servers, command line and client. What a worker asks (claim, beat,
keep, settle, release) is on the engine itself; the HTTP server offers the same to workers without a database. The store
is private: nothing above the engine touches it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace

from telecine.engine.accounts.keys import Keys
from telecine.engine.events.counters import EventCounters
from telecine.engine.events.event_context import Announcer
from telecine.engine.events.news_store import NewsStore, Ringer
from telecine.engine.events.stream import Stream
from telecine.engine.jobs import registration as registering
from telecine.engine.jobs.graph_cache import GraphCache
from telecine.engine.jobs.job_operations import JobOperations
from telecine.engine.jobs.subject_operations import SubjectOperations
from telecine.engine.jobs.submit import Submission, Submitted
from telecine.engine.leases import claim as claiming
from telecine.engine.leases import lease_operations, recovery, task_inputs
from telecine.engine.leases import sweep as sweeping
from telecine.engine.leases.settle_batch import SettleBatch
from telecine.engine.leases.sweep import Sweep
from telecine.engine.maintenance.background import OutageLog
from telecine.engine.maintenance.maintenance_operations import MaintenanceOperations
from telecine.engine.maintenance.watch_folders import WatchedFiles
from telecine.engine.queries.published_files import PublishedFiles
from telecine.engine.queries.query_operations import Queries
from telecine.engine.uploads.records import Uploads
from telecine.engine.webhooks.deliveries import Deliveries
from telecine.engine.webhooks.subscriptions import Webhooks
from telecine.errors import StoreError, Unreachable, WorkerGone
from telecine.facts import (
    DAY,
    LEASE,
    SWEEP,
    Brief,
    Expired,
    HeldLease,
    KeptArtifact,
    Lease,
    LeaseOutcome,
    LogEntry,
    Millis,
    Mode,
    Orders,
    Released,
    SettleReply,
    StoredArtifact,
    TaskId,
    WorkerId,
)
from telecine.graph import Graph
from telecine.store import Store
from telecine.worker_facts import NO_TOTALS, Registration, Totals
from telecine.world import World


class Silence:
    def ring(self, lanes: Iterable[str]) -> None:
        """No bell: a worker that waits looks by itself."""


class Engine:
    """`bell` rings for lanes that got work, `news` after each commit that may have written events."""

    def __init__(
        self,
        store: Store,
        *,
        bell: Ringer | None = None,
        news: Ringer | None = None,
        hints: claiming.ClaimHints | None = None,
        world: World | None = None,
        lease: Millis = LEASE,
    ) -> None:
        self._silent_store = store  # for what writes no events, or reads them
        self._store: Store = store if news is None else NewsStore(store, news)
        self.world = world or World()
        self.lease = lease
        self.bell: Ringer = bell or Silence()
        self.hints = hints
        self.outages = OutageLog(self.world.mono)
        self.graph_cache = GraphCache()
        self.may_hold_seen_lanes = True  # rows of `lane_seen`, perhaps from an earlier process
        self._settle_batch = SettleBatch(self._store, self.graph_cache, self.world)
        self._slots = task_inputs.Slots(self._store, self.world)
        self.jobs = JobOperations(self)
        self.subjects = SubjectOperations(self)
        self.queries = Queries(self._store, self.graph_cache, self.world)
        self.events = Stream(self._store, world=self.world)
        self.keys = Keys(self._silent_store, self.world)
        self.deliveries = Deliveries(self._silent_store, self.world, stream=self.events)
        self.counters = EventCounters(self._silent_store, self.events, self.world)
        self.watched_files = WatchedFiles(self._silent_store)
        self.maintenance = MaintenanceOperations(self)

    def webhooks(self, private: Sequence[str] = ()) -> Webhooks:
        """`private`: networks that webhooks may name although they are not public."""
        return Webhooks(self._store, self.world, private=private)

    def uploads(self, life: Millis = DAY, quota: int = 0) -> Uploads:
        return Uploads(self._store, life, quota)

    def announcer(self) -> Announcer:
        """Events with what readers want to know about each. It caches jobs, so each reader has its own."""
        return Announcer(self._store, self.events, self.graph_cache)

    def published_files(self, kind: str) -> PublishedFiles:
        return PublishedFiles(self._store, kind)

    # -- the worker's words ----------------------------------------------------------------------

    async def enlist(self, registration: Registration) -> WorkerId:
        return await self._store.run(lambda: registering.worker(registration))

    async def claim(self, worker: WorkerId, request: str, lanes: Mapping[str, str], wanted: int) -> list[Lease]:
        """Lease up to `wanted` tasks of these lanes (lane -> flow); a repeated request gets the same ones."""
        ask = claiming.ClaimQuery(worker, request, lanes, wanted, self.lease)
        if self.hints is not None:
            ask = await claiming.hinted(self.hints, ask)
        rows = await self._store.run(lambda: claiming.claim(ask))
        halted = {row["job_id"] for row in rows if row["halted"]}
        rows = [row for row in rows if not row["halted"]] if halted else rows
        for job_id in halted:
            await self.jobs.wind_down(job_id)
        due, standing = bool(rows) and rows[0]["due"], False
        if not rows:
            rows, due, standing = await self._store.read(lambda: claiming.overlooked(ask))
        if due and len(rows) < wanted:
            self.bell.ring(await self._store.run(claiming.unpark))
        if not rows and (due or standing):
            # What became due just now can be granted, and what others had locked and did not take.
            rows = [row for row in await self._store.run(lambda: claiming.claim(ask)) if not row["halted"]]
        if self.hints is not None:
            claiming.judge(self.hints, ask, rows)
        graphs = await self._graphs_of({row["flow_id"] for row in rows})
        self._settle_batch.remember(rows, graphs)
        return [claiming.lease_of(row, worker, graphs[row["flow_id"]]) for row in rows]

    async def _graphs_of(self, flow_ids: Collection[int]) -> Mapping[int, Graph]:
        """From the cache, mostly: a claim does not wait for a reader."""
        known = self.graph_cache.known(flow_ids)
        return await self._store.read(lambda: self.graph_cache.fetch(flow_ids)) if known is None else known

    async def glance(self, lanes: Mapping[str, str]) -> bool:
        """Is there anything to claim? Reads only."""
        return await self._store.read(lambda: claiming.glance(lanes))

    async def brief(self, lease: Lease) -> Brief:
        brief = await self._store.read(lambda: claiming.brief(lease, self.graph_cache))
        fleet = await self._slots.of(lease.flow)
        return replace(brief, slots=fleet.slots, labels=fleet.labels)

    async def artifacts(self, lease: Lease, stages: Sequence[str]) -> list[StoredArtifact]:
        return await self._store.read(lambda: task_inputs.artifacts(lease, stages, self.graph_cache))

    async def published(self, lease: Lease) -> list[StoredArtifact]:
        return await self._store.read(lambda: task_inputs.published(lease.subject))

    async def beat(self, worker: WorkerId, held: Sequence[HeldLease], totals: Totals = NO_TOTALS) -> Orders:
        try:
            return await self._store.run(lambda: lease_operations.beat(worker, held, totals, self.lease))
        except WorkerGone:
            await self._store.read(lambda: registering.check_not_revoked(worker))
            raise

    async def keep(self, task_id: TaskId, token: int, items: Sequence[KeptArtifact]) -> None:
        await self._store.run(lambda: lease_operations.keep(task_id, token, items, self.graph_cache))

    async def log(self, lines: Sequence[LogEntry]) -> None:
        if lines:
            await self._store.run(lambda: lease_operations.log(lines))

    async def settle(self, words: Sequence[LeaseOutcome]) -> list[SettleReply]:
        """Report outcomes, any mixture."""
        settled = await self._settle_batch.settle(words)
        if settled.lanes:
            self.bell.ring(settled.lanes)
        if settled.ended:
            await self.jobs.release_waiting(settled.ended)
        return list(settled.answers)

    async def release(self, leases: Iterable[tuple[TaskId, int]], reason: str = "released") -> list[SettleReply]:
        return await self.settle([LeaseOutcome(task, token, Released(reason)) for task, token in leases])

    # -- workers ---------------------------------------------------------------------------------

    async def set_mode(self, worker: WorkerId, mode: Mode, *, revoke: bool = False) -> None:
        """Drain, disable, enable or revoke. A disabled worker's leases go back with refund, at once."""
        await self._store.run(lambda: registering.mode(worker, mode, revoke))
        if mode is Mode.DISABLED:
            await self.give_back([worker], Released("revoked" if revoke else "disabled"))

    async def retire(self, worker: WorkerId) -> None:
        """The worker leaves in order: whatever it still holds goes back."""
        await self.give_back([worker], Released("shutdown"))
        await self._store.run(lambda: recovery.end_workers([worker]))

    async def give_back(self, workers: Sequence[int], fact: Released | Expired) -> int:
        """All leases of these workers; how many."""
        words = await self._store.read(lambda: recovery.leases_of(workers, fact))
        return sum(answer.accepted for answer in await self.settle(words))

    # -- recovery --------------------------------------------------------------------------------

    async def sweep(self, period: Millis = SWEEP) -> Sweep:
        """One pass: what is ours by turn, and what only this machine can see."""
        return await sweeping.sweep(self, period)


__all__ = ["Engine", "Registration", "StoreError", "Submission", "Submitted", "Sweep", "Unreachable"]
