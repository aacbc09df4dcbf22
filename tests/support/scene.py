"""A database with an engine and a worker on it, and time that moves by assignment.

    @played
    async def test_a_done_task_shows_so(scene: Scene) -> None: ...

runs the story once on SQLite and once on PostgreSQL, each time on an empty database.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import pytest

from telecine import Flow
from telecine.engine import Engine, Registration
from telecine.facts import Done, Failed, HeldLease, JobId, Lease, LeaseOutcome, Outcome, SettleReply, TaskId, WorkerId
from telecine.store import Ask, Rows, Steps, Store, ask
from tests.support.builders import NOW, Loaded

DIALECTS = ("sqlite", "postgres")
ROWS = ("job", "stage", "attempt")
TABLES = [
    *("flow", "job", "job_after", "stage", "task", "attempt", "event", "worker", "artifact", "freed", "subject"),
    *("subject_version", "idempotency", "job_log", "lock", "api_key", "archive"),
    *("worker_key", "upload", "subject_gone", "job_gone", "webhook", "delivery", "postman", "alert", "tally"),
    *("watched", "lane_seen"),
]


class Scene:
    """What a story acts on. `url` opens the same database a second time."""

    def __init__(self, url: str, store: Store) -> None:
        self.url = url
        self.store = store
        self.engine = Engine(store)
        self.views = self.engine.queries
        self.lanes: dict[str, str] = {}
        self.worker = WorkerId(0)
        self._requests = 0
        # What else must age when time passes: a Redis, for instance.
        self.ageing: list[Callable[[int], None]] = []

    @property
    def is_postgres(self) -> bool:
        return self.url.startswith("postgres")

    @property
    def new_events(self) -> str:
        """The table where an event is written first."""
        return "unnumbered" if self.is_postgres else "event"

    def table(self, name: str) -> str:
        """Where rows of that name are: in PostgreSQL a plain task has none of these, and such names are views."""
        return f"{name}_row" if self.is_postgres and name in ROWS else name

    async def give_rows(self) -> None:
        """Let every job have the rows that one has of which somebody asked something."""
        await self.ask("job_row_add", ids=[row["id"] for row in await self.sql("select id from job order by id")])

    @property
    def now(self) -> int:
        assert self.store.now is not None
        return self.store.now

    def pass_time(self, ms: int) -> None:
        self.store.now = self.now + ms
        for age in self.ageing:
            age(ms)

    async def enact(self, *flows: Flow) -> None:
        """Make flows known and a worker that serves all their lanes."""
        for flow in flows:
            await self.engine.jobs.register(flow)
            for number in range(len(flow.graph.stages)):
                self.lanes[flow.graph.lane(number)] = flow.name
        self.worker = await self.enlist("ann")

    async def enlist(self, name: str, **more: Any) -> WorkerId:
        return await self.engine.enlist(
            Registration(**{"name": name, "hostname": "here", "lanes": tuple(self.lanes), "slots": 4, **more})
        )

    async def submit(self, flow: str = "film", spec: Any = None, **options: Any) -> JobId:
        return (await self.engine.jobs.submit(flow, spec, **options)).job_id

    async def claim(self, wanted: int = 1, worker: WorkerId | None = None) -> list[Lease]:
        self._requests += 1
        who = self.worker if worker is None else worker
        return await self.engine.claim(who, f"request {self._requests}", self.lanes, wanted)

    async def settle(self, leases: Sequence[Lease] | Lease, outcome: Outcome | None = None) -> list[SettleReply]:
        some = [leases] if isinstance(leases, Lease) else leases
        fact = Done() if outcome is None else outcome
        return await self.engine.settle([LeaseOutcome(lease.task_id, lease.token, fact) for lease in some])

    async def run_all(self, outcome: Outcome | None = None) -> int:
        """Claim and settle until nothing is left to claim; how many tasks that were."""
        count = 0
        while leases := await self.claim(100):
            await self.settle(leases, outcome)
            count += len(leases)
        return count

    async def fail_for_good(self, lease: Lease, code: str = "broken") -> None:
        await self.settle(lease, Failed("no use", code=code, permanent=True))

    async def beat(self, *leases: Lease, progress: float | None = None) -> None:
        held = [HeldLease(task_id=TaskId(x.task_id), token=x.token, progress=progress) for x in leases]
        await self.engine.beat(self.worker, held)

    async def ask(self, name: str, **params: Any) -> Rows:
        return await ask(self.store, name, params)

    async def sql(self, text: str) -> list[dict[str, Any]]:
        """Say something to the database behind the engine's back."""
        return await execute(self.store, text)

    async def clean(self) -> None:
        """Empty every table, so that many tests can share a schema."""
        rest = [f"update pulse set at = {NOW}", "update event_counter set pruned = 0"]
        words = [*(f"delete from {self.table(table)}" for table in TABLES), *rest]
        if not self.is_postgres:
            for text in words:
                await self.sql(text)
            return
        async with self.store.connections.borrow() as connection:  # type: ignore[attr-defined]
            words = [*words, "delete from unnumbered"]
            await connection.execute(";".join(words))


async def execute(store: Store, text: str) -> list[dict[str, Any]]:
    if hasattr(store, "connections"):
        async with store.connections.borrow() as connection:
            return [dict(row) for row in await connection.fetch(text)]

    def steps() -> Steps[list[dict[str, Any]]]:
        rows = store._driver._connection.execute(text).fetchall()  # type: ignore[attr-defined]
        yield Ask("pulse_get", {})
        return [dict(row) for row in rows]

    return await store.run(steps)


def played(story: Callable[[Scene], Awaitable[None]], dialects: Sequence[str] = DIALECTS) -> Callable[..., None]:
    """Turn an async story into a test on each database."""

    @pytest.mark.parametrize("dialect", dialects)
    def test(request: pytest.FixtureRequest, dialect: str) -> None:
        perform(story, request, f"{dialect}_database")

    return named_like(story, test)


def on_postgres(story: Callable[[Scene], Awaitable[None]]) -> Callable[..., None]:
    return played(story, ("postgres",))


def alone(story: Callable[[Scene], Awaitable[None]], dialects: Sequence[str] = DIALECTS) -> Callable[..., None]:
    """The same for a story that changes tables, fills them to the brim or counts from one: its schema is its own."""

    @pytest.mark.parametrize("dialect", dialects)
    def test(request: pytest.FixtureRequest, dialect: str) -> None:
        perform(story, request, "postgres_database_of_its_own" if dialect == "postgres" else "sqlite_database")

    return named_like(story, test)


def alone_on_postgres(story: Callable[[Scene], Awaitable[None]]) -> Callable[..., None]:
    return alone(story, ("postgres",))


def named_like(story: Callable[..., Any], test: Callable[..., None]) -> Callable[..., None]:
    test.__name__ = story.__name__
    test.__doc__ = story.__doc__
    test.__module__ = story.__module__
    return test


def perform(story: Callable[[Scene], Awaitable[None]], request: pytest.FixtureRequest, database: str) -> None:
    """Play it on that fixture's database: an address and a store, whose tables are empty."""

    async def play() -> None:
        scene = Scene(url, store)
        store.now = NOW
        object.__setattr__(scene.engine.world, "dice", Loaded())
        await story(scene)

    url, store = request.getfixturevalue(database)
    request.getfixturevalue("runner").run(play())
