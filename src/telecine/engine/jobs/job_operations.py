"""What callers do with flows and jobs: each method is one short transaction, and a ring for the lanes that got work."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from telecine.engine.jobs import bulk, control, delete_job, registration
from telecine.engine.jobs.submit import Submission, Submitted, Wanted, submit
from telecine.engine.leases import recovery
from telecine.engine.maintenance.retention import free_unfinished
from telecine.errors import NotFound
from telecine.facts import Instant, JobId, Status
from telecine.flow import Flow
from telecine.graph import Graph

if TYPE_CHECKING:
    from telecine.engine import Engine
    from telecine.store.caller_transaction import Transaction

__all__ = ["JobOperations", "Transaction"]


class JobOperations:
    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._store = engine._store
        self._graphs = engine.graph_cache
        self._flows: dict[str, tuple[int, Graph]] = {}

    # -- flows -----------------------------------------------------------------------------------

    async def register(self, flow: Flow | Graph) -> int:
        """Make a flow known to the database, so that any server can move its jobs."""
        graph = flow.graph if isinstance(flow, Flow) else flow
        flow_id: int = await self._store.run(lambda: registration.flow(graph))
        self._graphs.put(flow_id, graph)
        self._flows[graph.flow] = (flow_id, graph)
        return flow_id

    async def pause(self, flow: str, paused: bool = True) -> None:
        await self._store.run(lambda: control.pause(flow, paused))

    async def flow_row(self, name: str) -> tuple[int, Graph]:
        """The newest registered graph of a flow; looked up again unless this process has registered it itself."""
        if name not in self._flows:
            found = await self._store.read(lambda: registration.newest(name, self._graphs))
            if found is None:
                names = await self._store.read(registration.names)
                known = f"known flows: {', '.join(names)}" if names else "no flow is registered yet"
                raise NotFound(f"there is no flow {name!r}; {known}")
            return found
        return self._flows[name]

    async def with_flows(self, wanted: Sequence[Submission]) -> Wanted:
        """Each submission with the row of its flow, which is looked up once for all that name it."""
        if len(wanted) == 1:
            return [(wanted[0], *await self.flow_row(wanted[0].flow))]
        flows = {name: await self.flow_row(name) for name in dict.fromkeys(one.flow for one in wanted)}
        return [(one, *flows[one.flow]) for one in wanted]

    # -- jobs ------------------------------------------------------------------------------------

    async def submit(self, flow: str, spec: Any = None, **options: Any) -> Submitted:
        """Submit one job; options are the fields of `Submission`."""
        [answer] = await self.submit_many([Submission(flow=flow, spec=spec, **options)])
        return answer

    async def submit_many(self, wanted: Sequence[Submission]) -> list[Submitted]:
        """Submit jobs in one transaction: all or none."""
        known = await self.with_flows(wanted)
        answers = await self._store.run(lambda: submit(known))
        self._engine.bell.ring({lane for answer in answers[:1] for lane in answer.lanes})
        return answers

    async def submit_within(self, transaction: Transaction, wanted: Sequence[Submission]) -> list[Submitted]:
        """Submit jobs on the caller's connection: they exist if and when the caller commits. No bell rings."""
        from telecine.store.caller_transaction import run_within  # noqa: PLC0415 - it loads the drivers of both databases

        known = await self.with_flows(wanted)
        return await run_within(self._engine._silent_store, transaction, lambda: submit(known))

    async def cancel(self, job_id: JobId, *, reason: str = "cancelled", actor: str = "") -> Status:
        status = await self._store.run(lambda: control.cancel(job_id, self._graphs, reason=reason, actor=actor))
        if status.is_final:
            await self.release_waiting([job_id])
        return status

    async def retry(self, job_id: JobId, *, generation: int | None = None, actor: str = "") -> None:
        steps = partial(control.retry, job_id, self._graphs, generation=generation, actor=actor)
        self._engine.bell.ring(await self._store.run(steps))

    async def resume(self, job_id: JobId, *, actor: str = "") -> Status:
        """Let a job that was asked for again continue; its status before."""
        status, lanes = await self._store.run(lambda: control.resume(job_id, self._graphs, actor=actor))
        self._engine.bell.ring(lanes)
        return status

    async def edit(
        self,
        job_id: JobId,
        *,
        version: int | None = None,
        priority: int | str | None = None,
        run_at: Instant | None = None,
    ) -> None:
        await self._store.run(
            lambda: control.edit(job_id, self._graphs, version=version, priority=priority, run_at=run_at)
        )

    async def delete(self, job_id: JobId, *, actor: str = "") -> bool:
        """Cancel a job and archive it; False if it is archived only later, when the last worker has let go of it."""
        return await delete_job.delete(self._engine, job_id, actor=actor)

    async def for_each(self, ids: Sequence[int], sees: str | None, act: bulk.Act) -> bulk.Sum:
        """Do `act` to each of these jobs that belongs to `sees` (None: to any owner)."""
        return await bulk.on_each(self._store, ids, sees, act)

    async def free_unfinished(self, job_id: int, generation: int, folders: Sequence[str]) -> int:
        """Free the files that tasks of a failed job kept in these folders and did not finish; how many."""
        return len(await self._store.run(lambda: free_unfinished(job_id, generation, folders)))

    # -- consequences ----------------------------------------------------------------------------

    async def wind_down(self, job_id: int) -> None:
        """Cancel what waits in a job that was stopped; end it if nothing runs."""
        await self._store.run(lambda: control.wind_down(job_id, self._graphs))

    async def release_waiting(self, ended: Sequence[int] | None = None) -> int:
        """Open or cancel jobs that come after ones that have ended; without `ended`, all that a crash left."""
        if ended is not None and not await self._store.read(lambda: registration.awaited(ended)):
            return 0
        resolved = 0
        while waiting := await self._store.read(lambda: recovery.after_ended(ended)):
            for job_id, some in waiting.items():
                steps = partial(control.resolve_after, job_id, some, self._graphs)
                self._engine.bell.ring(await self._store.run(steps))
            resolved += len(waiting)
            if sum(map(len, waiting.values())) < recovery.BATCH:
                break
        return resolved
