"""Anything in any order: the engine on a real database beside a model in memory, compared after every step."""

import asyncio
import os
import random
import shutil
from collections.abc import Iterator
from operator import itemgetter
from pathlib import Path
from typing import Any, ClassVar

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from telecine.errors import LeaseLost, TelecineError
from telecine.facts import SECOND, SWEEP, Done, Fact, Failed, HeldLease, KeptArtifact, LeaseOutcome, Mode, Released
from telecine.store import Store
from telecine.store.open import bring_up_to_date, open_store
from tests.model import FLOWS, Lease, Model, Place
from tests.support.builders import a_flow, a_policy, a_stage
from tests.support.engine_fixture import Bed
from tests.support.thorough import THOROUGH

# So many stories in `make test`; of a mutant more, and ten times as many in `make proof`.
EXAMPLES = int(os.environ.get("TELECINE_TEST_EXAMPLES", "60" if THOROUGH else "20"))
STEPS = 50
# Of a mutant it is enough to know that it fails: to look for the shortest story would take minutes.
PHASES = [Phase.explicit, Phase.generate] if "TELECINE_MUTATED" in os.environ else list(Phase)
OPERA = a_flow(a_stage("sing", policy=a_policy(stall=30 * SECOND, max_attempts=2)), name="opera")
FILM = a_flow(
    a_stage("plan"),
    a_stage("cut", "plan", fan_out=True),
    a_stage("note", "plan", optional=True),
    a_stage("join", "cut note"),
)
FLOWS.update(opera=OPERA.graph, film=FILM.graph)
MEDDLING = ["pause", "resume", "resume", "drain", "disable", "enable", "enable"]
flows = st.sampled_from(["opera", "film"])
places = st.integers(0, 99)
progresses = st.sampled_from([None, 0.25, 0.5, 0.75])
facts = st.sampled_from([Done(), Done(), Done(result=1), Failed("no"), Failed("never", permanent=True), Released()])


class EngineBesideModel(RuleBasedStateMachine):
    runner: ClassVar[asyncio.Runner]
    store: ClassVar[Store]
    url: ClassVar[str]

    def do(self, coroutine: Any) -> Any:
        return self.runner.run(coroutine)

    @initialize(flow=flows)
    def begin(self, flow: str) -> None:
        self.bed = Bed(self.url, self.store)
        self.model = Model()
        self.leases: list[tuple[Lease, int]] = []
        self.ids: dict[Place, int] = {}
        self.requests: dict[int, list[str]] = {}
        self.do(self.bed.clean())
        self.do(self.bed.enact(OPERA, FILM))
        self.workers = [self.bed.worker, self.do(self.bed.enlist("bob"))]
        self.model.modes = dict.fromkeys(self.workers, Mode.ACTIVE)
        self.submit(flow, 5, 0)

    def recent(self, which: int) -> tuple[Lease, int]:
        """Mostly a lease that is still out, sometimes one of the last that were; and whose it was."""
        out = [(x, who) for x, who in self.leases if self.model.is_out(x)]
        some = out if out and which < 65 else self.leases[-6:]
        return some[which % len(some)]

    # -- people ---------------------------------------------------------------------------------

    @rule(flow=flows, priority=st.sampled_from([5, 5, 8]), later=st.sampled_from([0, 0, 15]))
    def submit(self, flow: str, priority: int, later: int) -> None:
        run_at = self.bed.now + later * SECOND if later else None
        job_id = self.do(self.bed.submit(flow, priority=priority, run_at=run_at))
        self.model.submit(job_id, flow, priority, run_at)

    @rule(which=places, what=st.sampled_from(["cancel", "retry", "retry", "edit"]), priority=st.integers(0, 10))
    def ask_for(self, which: int, what: str, priority: int) -> None:
        job_id = sorted(self.model.jobs)[-1 - which % min(3, len(self.model.jobs))]
        match what:
            case "cancel":
                assert self.said(self.bed.engine.jobs.cancel(job_id)) == self.model.cancel(job_id)
            case "retry":
                assert self.said(self.bed.engine.jobs.retry(job_id)) == self.model.retry(job_id)
            case _:
                edited = self.said(self.bed.engine.jobs.edit(job_id, priority=priority))
                assert edited == self.model.edit(job_id, priority)

    def said(self, asked: Any) -> str | None:
        try:
            answer = self.do(asked)
        except TelecineError as error:
            return type(error).__name__
        return None if answer is None else str(answer)

    @rule(what=st.sampled_from(MEDDLING), flow=flows, who=st.integers(0, 1))
    def meddle(self, what: str, flow: str, who: int) -> None:
        if what in ("pause", "resume"):
            self.do(self.bed.engine.jobs.pause(flow, what == "pause"))
            (self.model.paused.add if what == "pause" else self.model.paused.discard)(flow)
            return
        worker, mode = self.workers[who], {"drain": Mode.DRAINING, "disable": Mode.DISABLED}.get(what, Mode.ACTIVE)
        self.do(self.bed.engine.set_mode(worker, mode))
        self.model.modes[worker] = mode
        if mode is Mode.DISABLED:
            self.model.give_back(worker, Released("disabled"))

    # -- workers --------------------------------------------------------------------------------

    def numbers(self) -> dict[Place, int]:
        """Those of the tasks: in the order of creation; in PostgreSQL within a job, whose first task has its own."""
        rows = self.do(self.bed.sql("select id, job_id, stage, position from task"))
        found = {(row["job_id"], row["stage"], row["position"]): row["id"] for row in rows}
        made = [(place[0] if self.bed.is_postgres else 0, found[place]) for place in self.model.work]
        assert sorted(made, key=itemgetter(0)) == sorted(made)
        if self.bed.is_postgres:
            assert {place[0] for place in self.model.work} <= set(found.values())
        return found

    @rule(who=st.integers(0, 1), wanted=st.sampled_from([1, 2, 5]), again=st.sampled_from([0, 0, 0, 1, 2]))
    def claim(self, who: int, wanted: int, again: int) -> None:
        """`again`: the last request once more, or the one before it."""
        worker = self.workers[who]
        asked = self.requests.setdefault(worker, [])
        if again == 0 or len(asked) < again:
            asked.append(f"r{len(asked)}")
            again = 1
        numbers = self.numbers()
        leases = self.do(self.bed.claim(wanted, worker, request=asked[-again]))
        granted = self.model.claim(worker, asked[-again], wanted, numbers)
        places = [((x.job_id, FLOWS[x.flow].numbers[x.stage], x.position), x.token) for x in leases]
        assert places == granted
        for (place, token), lease in zip(places, leases, strict=True):
            self.ids[place] = lease.task_id
            self.leases.append(((place, token), worker))

    @precondition(lambda self: self.leases)
    @rule(some=st.lists(st.tuples(places, facts, st.integers(0, 3)), min_size=1, max_size=4))
    def settle(self, some: list[tuple[int, Fact, int]]) -> None:
        """Mostly of recent leases, some of old ones; each task at most once in a batch."""
        self.report([(self.recent(which)[0], fact, pieces) for which, fact, pieces in some])

    def report(self, some: list[tuple[Lease, Fact, int]]) -> None:
        words: dict[Place, tuple[Lease, Fact]] = {}
        for lease, fact, pieces in some:
            plans = FLOWS[self.model.jobs[lease[0][0]].flow].stages[lease[0][1]].name == "plan"
            planned = Done(plan={"cut": list(range(pieces))}) if plans and isinstance(fact, Done) else fact
            words.setdefault(lease[0], (lease, planned))
        answers = self.do(
            self.bed.engine.settle(
                [LeaseOutcome(self.ids[place], lease[1], fact) for place, (lease, fact) in words.items()]
            )
        )
        got = [(answer.accepted, answer.code, answer.state, answer.ready_at) for answer in answers]
        assert got == self.model.settle(list(words.values()))

    @rule(who=st.integers(0, 1), fact=facts, pieces=st.integers(1, 3))
    def work(self, who: int, fact: Fact, pieces: int) -> None:
        """Claim what there is and settle it at once: this is how stories get on."""
        before = len(self.leases)
        self.claim(who, 3, 0)
        if len(self.leases) > before:
            self.report([(lease, fact, pieces) for lease, _ in self.leases[before:]])

    @precondition(lambda self: self.leases)
    @rule(some=st.lists(st.tuples(places, progresses), min_size=1, max_size=3), foreign=st.integers(0, 5))
    def beat(self, some: list[tuple[int, float | None]], foreign: int) -> None:
        """Of the worker that held the first of these leases, or now and then of the other one."""
        owner = self.recent(some[0][0])[1]
        worker = next(w for w in self.workers if (w == owner) != (foreign == 0))
        held = {self.recent(which)[0]: progress for which, progress in some}
        holdings = [
            HeldLease(task_id=self.ids[place], token=token, progress=progress)
            for (place, token), progress in held.items()
        ]
        orders = self.do(self.bed.engine.beat(worker, holdings))
        renewed, stop = self.model.beat(worker, list(held.items()))
        known = {task_id: place for place, task_id in self.ids.items()}
        assert {(known[task], token) for task, token in orders.renewed} == renewed
        assert {(known[task], token) for task, token in orders.stop} == stop

    @precondition(lambda self: self.leases)
    @rule(which=places, value=st.integers(0, 1))
    def keep(self, which: int, value: int) -> None:
        lease, _ = self.recent(which)
        try:
            self.do(self.bed.engine.keep(self.ids[lease[0]], lease[1], [KeptArtifact(name="at", token=0, value=value)]))
            kept = True
        except LeaseLost:
            kept = False
        assert kept == self.model.keep(lease, value)

    # -- time -----------------------------------------------------------------------------------

    @rule(seconds=st.sampled_from([1, 2, 9, 9, 10, 19, 60]), sweep=st.booleans())
    def pass_time(self, seconds: int, sweep: bool) -> None:
        self.bed.pass_time(seconds * SECOND)
        self.model.now = self.bed.now
        if sweep:
            self.do(self.bed.engine.sweep())
            self.model.sweep(SWEEP)

    @invariant()
    def the_database_is_as_the_model_says(self) -> None:
        if not hasattr(self, "bed"):
            return
        tasks = self.do(self.bed.sql("select * from task"))
        found = {_place(row): _task(row) for row in tasks}
        assert found == {place: work.row() for place, work in self.model.work.items()}
        jobs = self.do(self.bed.sql("select * from job"))
        assert {row["id"]: _job(row) for row in jobs} == {job.id: job.row() for job in self.model.jobs.values()}

    def teardown(self) -> None:
        if hasattr(self, "bed"):
            self.do(self.bed.audited())


def _place(row: dict[str, Any]) -> Place:
    return row["job_id"], row["stage"], row["position"]


def _task(row: dict[str, Any]) -> tuple[object, ...]:
    ready = row["state"] == "ready"
    return (
        *(_place(row), row["state"], row["token"], row["tries"], row["losses"], row["releases"]),
        *(row["ready_at"] if ready else None, row["rank"] if ready else None, bool(row["parked"]), row["worker"]),
        *(row["lease_until"], row["stops_at"], row["best"]),
    )


def _job(row: dict[str, Any]) -> tuple[object, ...]:
    flags = (bool(row["cancel_asked"]), bool(row["failing"]), row["warnings"], row["generation"], row["priority"])
    return (row["id"], row["status"], *flags)


@pytest.fixture
def sqlite_store(runner: asyncio.Runner, sqlite_template: Path, tmp_path: Path) -> Iterator[tuple[str, Store]]:
    shutil.copy(sqlite_template, tmp_path / "telecine.db")
    url = f"sqlite:///{tmp_path}/telecine.db"
    store = open_store(url, dice=random.Random(1))
    runner.run(bring_up_to_date(store, url))
    yield url, store
    runner.run(store.close())


@pytest.mark.parametrize("dialect", ["sqlite", "postgres"])
def test_whatever_happens_the_database_is_as_the_model_says(
    request: pytest.FixtureRequest, runner: asyncio.Runner, dialect: str
) -> None:
    class OnThisDatabase(EngineBesideModel):
        pass

    OnThisDatabase.runner = runner
    if dialect == "sqlite":
        OnThisDatabase.url, OnThisDatabase.store = request.getfixturevalue("sqlite_store")
    else:
        OnThisDatabase.url = request.getfixturevalue("postgres_schema_url")
        OnThisDatabase.store = request.getfixturevalue("postgres_store")
    run_state_machine_as_test(
        OnThisDatabase,
        settings=settings(
            max_examples=EXAMPLES,
            stateful_step_count=STEPS,
            deadline=None,
            suppress_health_check=list(HealthCheck),
            print_blob=True,
            phases=PHASES,
        ),
    )
