"""The engine: what anybody may ask of Telecine, each a short transaction on the store.

It is the worker's five words (claim, beat, keep, settle, release) for a worker that has the database
at hand; the HTTP server says the same words for one that has not.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Protocol

from telecine.engine.events.stream import Stream
from telecine.engine.jobs import control
from telecine.engine.jobs import registration as registering
from telecine.engine.jobs.graph_cache import Shelf
from telecine.engine.jobs.submit import Submission, Submitted, Wanted, submit
from telecine.engine.leases import claim as claiming
from telecine.engine.leases import lease_operations, recovery, task_inputs
from telecine.engine.leases import sweep as sweeping
from telecine.engine.leases.claim_cursor import Bookmarks
from telecine.engine.leases.settle_batch import Reception
from telecine.engine.leases.sweep import Sweep
from telecine.engine.maintenance.background import Duties
from telecine.engine.queries import subjects
from telecine.engine.queries.view_models import Page, SubjectLine, SubjectView
from telecine.engine.queries.views import Views
from telecine.errors import NotFound, StoreError, Unreachable, WorkerGone
from telecine.facts import (
    LEASE,
    SWEEP,
    Answer,
    Brief,
    Expired,
    Holding,
    Instant,
    JobId,
    Kept,
    Lease,
    Line,
    Millis,
    Mode,
    Orders,
    Released,
    Shelved,
    Status,
    TaskId,
    Word,
    WorkerId,
)
from telecine.flow import Flow
from telecine.graph import Graph
from telecine.store import Steps, Store
from telecine.worker_facts import NO_TOTALS, Registration, Totals
from telecine.world import World


class Ringer(Protocol):
    """The half of a bell that the engine needs: say that lanes have work."""

    def ring(self, lanes: Iterable[str]) -> None: ...


class Silence:
    def ring(self, lanes: Iterable[str]) -> None:
        """No bell: a worker that waits looks by itself."""


class Engine:
    def __init__(
        self,
        store: Store,
        *,
        bell: Ringer | None = None,
        hints: claiming.Hints | None = None,
        world: World | None = None,
        lease: Millis = LEASE,
    ) -> None:
        self.store = store
        self.world = world or World()
        self.lease = lease
        self.bell: Ringer = bell or Silence()
        self.hints = hints
        self.duties = Duties(self.world.mono)
        self.shelf = Shelf()
        self.may_hold_seen_lanes = True  # rows of `lane_seen`, perhaps from an earlier process
        self._bookmarks = Bookmarks(self.world.mono)
        self._reception = Reception(store, self.shelf, self.world)
        self._slots = task_inputs.Slots(store, self.world)
        self.views = Views(store, self.shelf)
        self.events = Stream(store, world=self.world)
        self._flows: dict[str, tuple[int, Graph]] = {}

    # -- flows and jobs --------------------------------------------------------------------------

    async def register(self, flow: Flow | Graph) -> int:
        """Make a flow known to the database, so that any server can move its jobs."""
        graph = flow.graph if isinstance(flow, Flow) else flow
        flow_id: int = await self.store.run(lambda: registering.flow(graph))
        self.shelf.put(flow_id, graph)
        self._flows[graph.flow] = (flow_id, graph)
        return flow_id

    async def submit(self, flow: str, spec: Any = None, **options: Any) -> Submitted:
        """Submit one job; options are the fields of `Submission`."""
        [answer] = await self.submit_many([Submission(flow=flow, spec=spec, **options)])
        return answer

    async def submit_many(self, wanted: Sequence[Submission]) -> list[Submitted]:
        """Submit jobs in one transaction: all or none."""
        known = await self.with_flows(wanted)
        answers = await self.store.run(lambda: submit(known))
        self.bell.ring({lane for answer in answers[:1] for lane in answer.lanes})
        return answers

    def submission(self, wanted: Sequence[tuple[Submission, int, Graph]]) -> Steps[list[Submitted]]:
        """The steps of a submit, for a transaction that belongs to the caller."""
        return submit(wanted)

    async def with_flows(self, wanted: Sequence[Submission]) -> Wanted:
        """Each with the row of its flow, which is looked up once for all that name it."""
        if len(wanted) == 1:
            return [(wanted[0], *await self.flow_row(wanted[0].flow))]
        flows = {name: await self.flow_row(name) for name in dict.fromkeys(one.flow for one in wanted)}
        return [(one, *flows[one.flow]) for one in wanted]

    async def flow_row(self, name: str) -> tuple[int, Graph]:
        """The newest registered graph of a flow; looked up again unless this process has registered it itself."""
        if name not in self._flows:
            found = await self.store.read(lambda: registering.newest(name, self.shelf))
            if found is None:
                names = await self.store.read(registering.names)
                known = f"known flows: {', '.join(names)}" if names else "no flow is registered yet"
                raise NotFound(f"there is no flow {name!r}; {known}")
            return found
        return self._flows[name]

    async def cancel(self, job_id: JobId, *, reason: str = "cancelled", actor: str = "") -> Status:
        status = await self.store.run(lambda: control.cancel(job_id, self.shelf, reason=reason, actor=actor))
        if status.is_final:
            await self.release_waiting([job_id])
        return status

    async def retry(self, job_id: JobId, *, generation: int | None = None, actor: str = "") -> None:
        steps = partial(control.retry, job_id, self.shelf, generation=generation, actor=actor)
        self.bell.ring(await self.store.run(steps))

    async def resume(self, job_id: JobId, *, actor: str = "") -> Status:
        """A person asks for a job again: let it go on. The answer is its status before."""
        status, lanes = await self.store.run(lambda: control.resume(job_id, self.shelf, actor=actor))
        self.bell.ring(lanes)
        return status

    async def edit(
        self,
        job_id: JobId,
        *,
        version: int | None = None,
        priority: int | str | None = None,
        run_at: Instant | None = None,
    ) -> None:
        await self.store.run(
            lambda: control.edit(job_id, self.shelf, version=version, priority=priority, run_at=run_at)
        )

    async def pause(self, flow: str, paused: bool = True) -> None:
        await self.store.run(lambda: control.pause(flow, paused))

    async def learn(self, subject: tuple[str, str], owner: str, facts: dict[str, Any]) -> None:
        """Facts about a subject that come from outside its jobs; handlers read them in their brief."""
        await self.store.run(lambda: subjects.learn(subject, owner, facts))

    async def subject(self, kind: str, subject_id: str) -> SubjectView:
        return await self.store.read(lambda: subjects.subject(kind, subject_id, self.shelf))

    async def subjects(
        self, kind: str, *, owner: str | None = None, cursor: str | None = None, limit: int = 100
    ) -> Page[SubjectLine]:
        return await self.store.read(
            lambda: subjects.subjects(kind, self.shelf, owner=owner, cursor=cursor, limit=limit)
        )

    # -- the worker's words ----------------------------------------------------------------------

    async def enlist(self, registration: Registration) -> WorkerId:
        return await self.store.run(lambda: registering.worker(registration))

    async def claim(self, worker: WorkerId, request: str, lanes: Mapping[str, str], wanted: int) -> list[Lease]:
        """Lease up to `wanted` tasks of these lanes (lane -> flow); a repeated request gets the same ones."""
        ask = claiming.Claim(worker, request, lanes, wanted, self.lease, after=self._bookmarks.find(lanes))
        if self.hints is not None:
            ask = await claiming.hinted(self.hints, ask)
        rows = await self.store.run(lambda: claiming.claim(ask))
        self._bookmarks.put(ask, rows)
        halted = {row["job_id"] for row in rows if row["halted"]}
        rows = [row for row in rows if not row["halted"]] if halted else rows
        for job_id in halted:
            await self.wind_down(job_id)
        due, standing = bool(rows) and rows[0]["due"], False
        if not rows:
            rows, due, standing = await self.store.read(lambda: claiming.overlooked(ask))
        if due and len(rows) < wanted:
            self.bell.ring(await self.store.run(claiming.unpark))
        if not rows and (due or standing):
            # What fell due just now can be granted, or what others had locked and did not take.
            rows = [row for row in await self.store.run(lambda: claiming.claim(ask)) if not row["halted"]]
        if self.hints is not None:
            claiming.judge(self.hints, ask, rows)
        graphs = await self._graphs_of({row["flow_id"] for row in rows})
        self._reception.remember(rows, graphs)
        return [claiming.lease_of(row, worker, graphs[row["flow_id"]]) for row in rows]

    async def _graphs_of(self, flow_ids: Collection[int]) -> Mapping[int, Graph]:
        """From the shelf, mostly: whoever has claimed waits for no reader."""
        known = self.shelf.known(flow_ids)
        return await self.store.read(lambda: self.shelf.fetch(flow_ids)) if known is None else known

    async def wind_down(self, job_id: int) -> None:
        """Cancel what waits in a job that was stopped; end it if nothing runs."""
        await self.store.run(lambda: control.wind_down(job_id, self.shelf))

    async def glance(self, lanes: Mapping[str, str]) -> bool:
        """Is there anything to claim? Reads only."""
        return await self.store.read(lambda: claiming.glance(lanes))

    async def brief(self, lease: Lease) -> Brief:
        brief = await self.store.read(lambda: claiming.brief(lease, self.shelf))
        fleet = await self._slots.of(lease.flow)
        return replace(brief, slots=fleet.slots, labels=fleet.labels)

    async def artifacts(self, lease: Lease, stages: Sequence[str]) -> list[Shelved]:
        return await self.store.read(lambda: task_inputs.artifacts(lease, stages, self.shelf))

    async def published(self, lease: Lease) -> list[Shelved]:
        return await self.store.read(lambda: task_inputs.published(lease.subject))

    async def beat(self, worker: WorkerId, held: Sequence[Holding], totals: Totals = NO_TOTALS) -> Orders:
        try:
            return await self.store.run(lambda: lease_operations.beat(worker, held, totals, self.lease))
        except WorkerGone:
            await self.store.read(lambda: registering.check_not_revoked(worker))
            raise

    async def keep(self, task_id: TaskId, token: int, items: Sequence[Kept]) -> None:
        await self.store.run(lambda: lease_operations.keep(task_id, token, items, self.shelf))

    async def log(self, lines: Sequence[Line]) -> None:
        if lines:
            await self.store.run(lambda: lease_operations.log(lines))

    async def settle(self, words: Sequence[Word]) -> list[Answer]:
        """Report outcomes, any mixture."""
        settled = await self._reception.settle(words)
        if settled.lanes:
            self.bell.ring(settled.lanes)
        if settled.ended:
            await self.release_waiting(settled.ended)
        return list(settled.answers)

    async def release(self, leases: Iterable[tuple[TaskId, int]], reason: str = "released") -> list[Answer]:
        return await self.settle([Word(task, token, Released(reason)) for task, token in leases])

    async def release_waiting(self, ended: Sequence[int] | None = None) -> int:
        """Open or cancel jobs that come after ones that have ended; without `ended`, all that a crash left."""
        if ended is not None and not await self.store.read(lambda: registering.awaited(ended)):
            return 0
        resolved = 0
        while waiting := await self.store.read(lambda: recovery.after_ended(ended)):
            for job_id, some in waiting.items():
                steps = partial(control.resolve_after, job_id, some, self.shelf)
                self.bell.ring(await self.store.run(steps))
            resolved += len(waiting)
            if sum(map(len, waiting.values())) < recovery.BATCH:
                break
        return resolved

    # -- workers ---------------------------------------------------------------------------------

    async def set_mode(self, worker: WorkerId, mode: Mode, *, revoke: bool = False) -> None:
        """Drain, disable, enable or revoke. A disabled worker's leases go back with refund, at once."""
        await self.store.run(lambda: registering.mode(worker, mode, revoke))
        if mode is Mode.DISABLED:
            await self.give_back([worker], Released("revoked" if revoke else "disabled"))

    async def retire(self, worker: WorkerId) -> None:
        """The worker leaves in order: whatever it still holds goes back."""
        await self.give_back([worker], Released("shutdown"))
        await self.store.run(lambda: recovery.end_workers([worker]))

    async def give_back(self, workers: Sequence[int], fact: Released | Expired) -> int:
        """All leases of these workers; how many."""
        words = await self.store.read(lambda: recovery.leases_of(workers, fact))
        return sum(answer.accepted for answer in await self.settle(words))

    # -- recovery --------------------------------------------------------------------------------

    async def sweep(self, period: Millis = SWEEP) -> Sweep:
        """One pass: what is ours by turn, and what only this machine can see."""
        return await sweeping.sweep(self, period)


__all__ = ["Engine", "Registration", "StoreError", "Submission", "Submitted", "Sweep", "Unreachable"]
