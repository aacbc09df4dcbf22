"""The public Python interface: submit jobs and follow them, from any program.

    async with telecine.connect("postgresql://…") as t:
        submitted = await t.submit("greet", {"name": "Ada"})
        job = await t.wait(submitted.job_id, timeout=60)

Nothing runs here: workers do. What is submitted is durable when `submit` returns.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Sequence
from contextlib import AbstractAsyncContextManager, aclosing, asynccontextmanager
from datetime import datetime
from typing import TYPE_CHECKING, Any

from telecine.engine import Submission, Submitted
from telecine.engine.events.stream import Event, Heartbeat, Reset
from telecine.engine.leases.remote_workers import RemoteWorkers
from telecine.engine.queries import job_watch
from telecine.engine.queries.job_lists import JobFilter
from telecine.engine.queries.query_operations import Queries
from telecine.engine.queries.view_models import JobLine, JobView, LogLine, Page
from telecine.errors import BadSpec
from telecine.facts import SECOND, Instant, JobId, Json, Mode, Status, WorkerId
from telecine.flow import Flow
from telecine.locks import HeldLock
from telecine.locks.guard import lock
from telecine.settings import Settings, load
from telecine.wiring import Parts, apps, make_locks, open_engine

if TYPE_CHECKING:
    from telecine.engine.jobs.job_operations import Transaction

When = datetime | Instant
VIDEOS = "transcode"  # the app behind the three methods about videos


@asynccontextmanager
async def connect(url: str | None = None, *, settings: Settings | None = None) -> AsyncIterator[Client]:
    """Open a client on the database at `url`; without one, on the database of the settings.

    A SQLite file is made if there is none. PostgreSQL must have been prepared by `telecine migrate`.
    """
    if settings is not None and url is not None:
        raise BadSpec("connect takes an address or settings, not both")
    async with open_engine(settings or load(given={"database_url": url}).settings) as parts:
        yield Client(parts)


class Client:
    """One open connection to Telecine's database; made by `connect`."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._engine = parts.engine
        self._locks = make_locks(parts)
        self._registered: set[Flow] = set()

    @property
    def views(self) -> Queries:
        """All that can be read: jobs, tasks, attempts, logs, files, workers, flows, counts."""
        return self._engine.queries

    async def now(self) -> Instant:
        """The database's clock, which is the one that counts."""
        return (await self._engine.queries.pulse()).now

    # -- flows -----------------------------------------------------------------------------------

    async def register(self, flow: Flow) -> None:
        """Make a flow known to the database. Workers do it for the flows that they serve."""
        await self._engine.jobs.register(flow)
        self._registered.add(flow)

    async def pause(self, flow: str) -> None:
        """Let no task of this flow start; what runs goes on."""
        await self._engine.jobs.pause(flow, True)

    async def resume(self, flow: str) -> None:
        """Let the tasks of a paused flow start again."""
        await self._engine.jobs.pause(flow, False)

    # -- jobs ------------------------------------------------------------------------------------

    async def submit(
        self,
        flow: str | Flow,
        spec: Json = None,
        *,
        owner: str = "",
        subject: tuple[str, str] | None = None,
        priority: int | str = "normal",
        run_at: When | None = None,
        after: Iterable[int] = (),
        skip: Iterable[str] = (),
        key: str | None = None,
        dedupe_key: str | None = None,
        transaction: Transaction | None = None,
    ) -> Submitted:
        """Submit one job and say its id.

        `spec` is what the handlers read, any JSON. `subject` is what the job is about, as (kind, id). `run_at`
        is the earliest start. `after` names jobs that must complete first. `skip` names stages that need not
        run. The same `key` again returns the first job instead of a second one; the same `dedupe_key` returns the
        twin that has not finished.

        `transaction` is a connection of the caller's, to the same database, in a transaction (asyncpg or
        sqlite3): the job then exists if and when the caller commits, and workers find it at their next look.
        """
        one = Submission(
            flow=await self._name(flow),
            spec=spec,
            owner=owner,
            subject=subject,
            priority=priority,
            run_at=instant(run_at),
            after=tuple(after),
            skip=tuple(skip),
            key=key,
            dedupe_key=dedupe_key,
        )
        [answer] = await self.submit_many([one], transaction=transaction)
        return answer

    async def submit_many(
        self, wanted: Sequence[Submission], *, transaction: Transaction | None = None
    ) -> list[Submitted]:
        """Submit thousands of jobs at once: all of them, or none."""
        if transaction is None:
            return await self._engine.jobs.submit_many(wanted)
        return await self._engine.jobs.submit_within(transaction, wanted)

    async def cancel(self, job_id: int, *, reason: str = "cancelled", actor: str = "") -> Status:
        """End the job: what has not begun at once, what runs with its worker's next beat."""
        return await self._engine.jobs.cancel(JobId(job_id), reason=reason, actor=actor)

    async def retry(self, job_id: int, *, generation: int | None = None, actor: str = "") -> None:
        """Open a failed or cancelled job again; what was done stays done.

        With the `generation` that has failed, a repeat changes nothing: it can be said again until it is answered.
        """
        await self._engine.jobs.retry(JobId(job_id), generation=generation, actor=actor)

    async def edit(
        self,
        job_id: int,
        *,
        version: int | None = None,
        priority: int | str | None = None,
        run_at: When | None = None,
    ) -> None:
        """Change the priority or the earliest start of an unfinished job, if it is still at `version`."""
        await self._engine.jobs.edit(JobId(job_id), version=version, priority=priority, run_at=instant(run_at))

    async def job(self, job_id: int) -> JobView:
        """One job in full; `NotFound` if there is none."""
        return await self.views.job(job_id)

    async def jobs(
        self,
        *,
        status: str | None = None,
        flow: str | None = None,
        owner: str | None = None,
        subject: tuple[str, str] | None = None,
        since: When | None = None,
        until: When | None = None,
        cursor: str | None = None,
        limit: int = 100,
    ) -> Page[JobLine]:
        """A page of jobs, newest first; `status` is one of the nine, or `open`. Give `next` back as the cursor."""
        wanted = JobFilter(
            status=status, flow=flow, owner=owner, subject=subject, since=instant(since), until=instant(until)
        )
        return await self.views.jobs(wanted, cursor=cursor, limit=limit)

    async def logs(self, job_id: int, *, after: int = 0, level: str | None = None) -> tuple[LogLine, ...]:
        """What the handlers of a job logged after the line with this id, at or above `level`."""
        return await self.views.logs(job_id, after=after, level=level, limit=500)

    async def watch(self, job_id: int) -> AsyncIterator[JobView]:
        """The job as it is now, and again whenever it has changed, until it has ended."""
        async for view in job_watch.watch(self._engine.queries, job_id):
            yield view

    async def wait(self, job_id: int, timeout: float | None = None) -> JobView:
        """The job when it has ended, however it did; `TimeoutError` if that takes longer than `timeout` seconds.

        With a timeout of 0 it looks once, for as long as the database takes to answer.
        """
        return await job_watch.wait(self._engine.queries, job_id, timeout)

    async def events(
        self, after: int | None = None, *, job_id: int | None = None, follow: bool = True
    ) -> AsyncGenerator[Event | Reset, None]:
        """What happens after the event with this number (None: from now on), of all jobs or of one, for ever.

        No event is missed and none comes twice, so the `seq` of the last one is all that a reader has to remember. A
        `Reset` says that what was asked for has been pruned: look at the jobs anew. Without `follow` it ends
        with what has happened until now (None: from the beginning).
        """
        stream = self._engine.events
        if follow:
            async with aclosing(stream.follow(after, job_id=job_id)) as following:
                async for item in following:
                    if not isinstance(item, Heartbeat):
                        yield item
            return
        seq, last = after or 0, await stream.newest()
        while seq < last:
            batch = await stream.after(seq, job_id=job_id)
            seq = batch.seq
            for one in [batch] if isinstance(batch, Reset) else batch.events:
                yield one

    # -- apps ------------------------------------------------------------------------------------

    def app(self, name: str) -> Any:
        """What an installed app offers to Python programs; `NotFound` if there is no such app."""
        return apps.client_of(self._parts, name)

    async def video(self, video_id: str) -> Any:
        """Short for `app("transcode").get(video_id)`."""
        return await self.app(VIDEOS).get(video_id)

    async def videos(
        self, *, owner: str | None = None, status: str | None = None, cursor: str | None = None, limit: int = 100
    ) -> Page[Any]:
        """Short for `app("transcode").list(…)`."""
        found: Page[Any] = await self.app(VIDEOS).list(owner=owner, status=status, cursor=cursor, limit=limit)
        return found

    async def delete_video(self, video_id: str, *, actor: str = "") -> None:
        """Short for `app("transcode").delete(video_id)`."""
        await self.app(VIDEOS).delete(video_id, actor=actor)

    # -- workers and locks -----------------------------------------------------------------------

    async def set_worker_mode(self, worker: int, mode: Mode, *, revoke: bool = False) -> None:
        """Drain, disable or enable a worker: a disabled one's tasks go to others. `revoke` shuts it and its key out."""
        if revoke:
            await RemoteWorkers(self._engine).revoke(WorkerId(worker), self._engine.keys)
        else:
            await self._engine.set_mode(WorkerId(worker), mode)

    def lock(
        self, name: str, ttl: float = 30.0, *, worker: str = "", patience: float = 0.0
    ) -> AbstractAsyncContextManager[HeldLock]:
        """Hold a named lock while the body runs, refreshed in the background. Times in seconds.

        `LockHeld` if somebody else has it for longer than `patience`; `LockLost` if it was lost in between: the
        body is cancelled then. Hand `token` of what you get to whatever the lock protects.
        """
        return lock(self._locks, name, round(ttl * SECOND), worker=worker, patience=patience, world=self._parts.world)

    async def locks(self) -> list[HeldLock]:
        """All locks that are held now."""
        return await self._locks.list()

    async def _name(self, flow: str | Flow) -> str:
        if isinstance(flow, str):
            return flow
        if flow not in self._registered:
            await self.register(flow)
        return flow.name


def instant(when: When | None) -> Instant | None:
    """A moment as the engine counts it: milliseconds since 1970."""
    if isinstance(when, datetime):
        if when.tzinfo is None:
            raise BadSpec(f"{when.isoformat()} has no time zone: use an aware datetime, e.g. in UTC")
        return round(when.timestamp() * SECOND)
    return when
