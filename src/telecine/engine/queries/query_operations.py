"""The read side: what the API, the command line and the library ask. Nothing here writes."""

from __future__ import annotations

import json

from telecine.engine.jobs.graph_cache import GraphCache
from telecine.engine.queries import (
    dead_letters,
    fleet,
    gauges,
    inventory,
    job_lists,
    job_view,
    ownership,
    published_files,
    timeline,
    waiting_reasons,
)
from telecine.engine.queries.fleet import FlowView, OwnStats, Stats, WorkerView
from telecine.engine.queries.job_lists import JobFilter
from telecine.engine.queries.view_models import (
    AttemptView,
    JobLine,
    JobView,
    LogLine,
    OutputFile,
    Page,
    SubjectStatus,
    TaskView,
)
from telecine.errors import NotFound
from telecine.facts import Instant, JobId, Json, Millis, StoredArtifact
from telecine.store import Row, Store
from telecine.world import World

EVERYTHING = JobFilter()
JobRow = Row


class Queries:
    def __init__(self, store: Store, graph_cache: GraphCache, world: World | None = None) -> None:
        self._store = store
        self._graph_cache = graph_cache
        self._world = world or World()

    async def job(self, job_id: int) -> JobView:
        """One job in full, also one that retention has put away; `NotFound` otherwise."""
        return await self._store.read(lambda: job_view.job(job_id, self._graph_cache))

    async def asked(self, job_id: int, key_id: str) -> tuple[Row | None, JobRow | None]:
        """The row of a key, and that of the job if it waits: `job` tells of any other. Whoever asks judges the key, and
        has the job made by `waiting_job` after that."""
        return await self._store.read(lambda: job_view.asked(job_id, key_id))

    async def waiting_job(self, row: JobRow) -> JobView:
        flow_id = row["flow_id"]
        graph = self._graph_cache.get(flow_id)
        if graph is None:
            graph = (await self._store.read(lambda: self._graph_cache.fetch([flow_id])))[flow_id]
        return job_view.waiting_job(row, graph)

    async def jobs(
        self, wanted: JobFilter = EVERYTHING, *, cursor: str | None = None, limit: int = 100
    ) -> Page[JobLine]:
        """A page of jobs, newest first."""
        return await self._store.read(lambda: job_lists.jobs(wanted, self._graph_cache, cursor=cursor, limit=limit))

    async def task(self, task_id: int) -> TaskView:
        """One task with its attempts and the reason why it waits."""
        return await self._store.read(lambda: waiting_reasons.task(task_id, self._graph_cache))

    async def tasks(
        self,
        job_id: int,
        *,
        stage: str | None = None,
        state: str | None = None,
        cursor: str | None = None,
        limit: int = 100,
    ) -> Page[TaskView]:
        return await self._store.read(
            lambda: timeline.tasks(job_id, self._graph_cache, stage=stage, state=state, cursor=cursor, limit=limit)
        )

    async def attempts(self, job_id: int, *, cursor: str | None = None, limit: int = 100) -> Page[AttemptView]:
        return await self._store.read(lambda: timeline.attempts(job_id, self._graph_cache, cursor=cursor, limit=limit))

    async def logs(
        self,
        job_id: int,
        *,
        after: int = 0,
        kind: str | None = None,
        level: str | None = None,
        limit: int = 100,
    ) -> tuple[LogLine, ...]:
        """Log lines and steps after the one with this id, at or above `level`."""
        return await self._store.read(
            lambda: timeline.logs(job_id, self._graph_cache, after_id=after, kind=kind, level=level, limit=limit)
        )

    async def outputs(self, job_id: int, *, cursor: str | None = None, limit: int = 100) -> Page[OutputFile]:
        return await self._store.read(lambda: timeline.outputs(job_id, self._graph_cache, cursor=cursor, limit=limit))

    async def kept(self, job_id: int, *stages: str) -> list[StoredArtifact]:
        """All that these stages of a job have kept so far, with its place; none named: all of them."""
        return await self._store.read(lambda: inventory.of_job(job_id, stages))

    async def kept_since(self, job_id: int, after: int, *stages: str) -> list[StoredArtifact]:
        """What these stages have kept since the artifact with this id; some that are young may be told again."""
        return await self._store.read(lambda: inventory.since(job_id, stages, after))

    async def carried(self, job_id: int) -> list[StoredArtifact]:
        """What a job's published version has taken over from the one before it."""
        return await self._store.read(lambda: inventory.carried(job_id))

    async def published(self, kind: str, subject_id: str) -> list[StoredArtifact]:
        """The artifacts of the version that a subject shows."""
        return await self._store.read(lambda: inventory.published((kind, subject_id)))

    async def of_version(self, version_id: int) -> list[StoredArtifact]:
        """The artifacts of one version, shown or not."""
        return await self._store.read(lambda: inventory.of_version(version_id))

    async def named(self, version_id: int, *names: str) -> dict[tuple[str, str], str]:
        """The keys of some files of a version, by stage and name."""
        return await self._store.read(lambda: inventory.named(version_id, names))

    async def tally(self, job_id: int) -> tuple[inventory.ArtifactCount, ...]:
        """How many artifacts each stage of a job has kept, by folder."""
        return await self._store.read(lambda: inventory.tally(job_id))

    async def worked(self, job_id: int) -> Millis:
        """For how long anybody has worked on a job: the time in which nobody did is left out."""
        return await self._store.read(lambda: inventory.worked(job_id))

    async def result(self, job_id: int, stage: str) -> Json:
        """What the one task of a stage returned; `NotFound` while it has not."""
        return json.loads(await self._store.read(lambda: inventory.result_of(job_id, stage)))

    async def failed_tasks(
        self, *, owner: str | None = None, flow: str | None = None, cursor: str | None = None, limit: int = 100
    ) -> Page[TaskView]:
        """The dead letters: latest first or, for one owner, those of the newest job first."""
        return await self._store.read(
            lambda: dead_letters.failed(self._graph_cache, owner=owner, flow=flow, cursor=cursor, limit=limit)
        )

    async def stale_tasks(
        self,
        age: Millis,
        *,
        owner: str | None = None,
        flow: str | None = None,
        cursor: str | None = None,
        limit: int = 100,
    ) -> Page[TaskView]:
        """Tasks that could be claimed and were not for this long, in the order of the queue."""
        return await self._store.read(
            lambda: dead_letters.stale(self._graph_cache, age, owner=owner, flow=flow, cursor=cursor, limit=limit)
        )

    async def subject(
        self, kind: str, subject_id: str, judge: waiting_reasons.Judge = waiting_reasons.by_facts
    ) -> SubjectStatus:
        """How a subject stands: its open jobs speak first, then `judge` by its facts."""
        return await self._store.read(lambda: waiting_reasons.subject(kind, subject_id, self._graph_cache, judge))

    async def workers(self, *, gone: bool = False) -> tuple[WorkerView, ...]:
        return await self._store.read(lambda: fleet.workers(gone=gone))

    async def worker(self, worker_id: int) -> WorkerView:
        found = await self._store.read(lambda: fleet.workers(gone=True, worker_id=worker_id))
        if not found:
            raise NotFound(f"there is no worker {worker_id}")
        return found[0]

    async def flows(self) -> tuple[FlowView, ...]:
        return await self._store.read(fleet.flows)

    async def stats(self, cap: int = fleet.CAP) -> Stats:
        """How full the queues are; counts stop at `cap`."""
        return await self._store.read(lambda: fleet.stats(cap))

    async def own_stats(self, owner: str) -> OwnStats:
        return await self._store.read(lambda: fleet.own_stats(owner))

    async def fleet_gauges(self, stale: Millis) -> gauges.FleetGauges:
        """All numbers that the metrics show."""
        return await gauges.read_figures(self._store, stale=stale)

    async def ping(self) -> None:
        """Ask the database for nothing; raises if it does not answer."""
        await gauges.ping(self._store)

    async def pulse(self) -> gauges.FleetPulse:
        """The database's time, and when the fleet last swept."""
        return await self._store.read(gauges.pulse)

    # -- who may see what ------------------------------------------------------------------------

    async def owned_job(self, job_id: int, sees: str | None) -> ownership.OwnedJob:
        """A job of this owner (None: of any); `NotFound` in the same words for a job of another owner and for none."""
        return await ownership.job(self._store, job_id, sees)

    async def job_of_task(self, task_id: int, sees: str | None) -> JobId:
        return await ownership.job_of_task(self._store, task_id, sees)

    async def failed_job(self, task_id: int, sees: str | None) -> JobId:
        """The job that this task has failed."""
        return await ownership.failed_job(self._store, task_id, sees)

    async def secret_and_time(self, name: str) -> tuple[str, Instant]:
        """A secret that all servers on this database share, made on first use; and the database's time."""
        return await published_files.secret_and_time(self._store, self._world, name)


__all__ = ["JobFilter", "Queries"]
