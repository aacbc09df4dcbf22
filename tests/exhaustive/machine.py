"""What can happen to a small job next, by the production rules `decide` and `advance`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from telecine.facts import Done, Expired, Fact, Failed, Overdue, Policy, Released, State, Status, Task, TaskId
from telecine.graph import Graph, StageRow, StageSpec, advance, build
from telecine.lifecycle import After, OutcomeRefused, decide
from tests.exhaustive.invariants import check_grant, check_heard, check_refused
from tests.exhaustive.world import Bounds, Unit, Worker, World
from tests.support.builders import Loaded

Decide = Callable[..., After | OutcomeRefused]
LEASE = 2  # in ticks
WAIT = 1
NOW = 100
WORDS: dict[str, Fact] = {
    "done": Done(),
    "failed": Failed("no"),
    "hopeless": Failed("never", permanent=True),
    "release": Released(),
}
SWEEP: dict[str, Fact] = {"expired": Expired(), "stalled": Overdue("stalled")}
FACTS = WORDS | SWEEP

Step = tuple[str, World]


@dataclass
class Machine:
    bounds: Bounds
    rules: Decide = decide

    def __post_init__(self) -> None:
        names = [f"s{n}" for n in range(self.bounds.stages)]
        specs = [StageSpec(name=name, needs=tuple(names[n - 1 : n] if n else ())) for n, name in enumerate(names)]
        self.graph: Graph = build("film", 1, specs)
        self._verdicts: dict[object, After | OutcomeRefused] = {}
        self.policy = Policy(max_attempts=self.bounds.attempts, base=WAIT, cap=WAIT, jitter=0)

    def start(self) -> World:
        rows = tuple(StageRow(n, State.NEW, len(s.needs), 1, 1) for n, s in enumerate(self.graph.stages))
        units = (Unit(),) * self.bounds.stages
        return self.follow(World(units, rows, (Worker(),) * self.bounds.workers))

    # -- what can happen next -------------------------------------------------------------------

    def steps(self, world: World) -> Iterator[Step]:
        for number, worker in enumerate(world.workers):
            yield from self.worker_steps(world, number, worker)
            for request in range(1, worker.sent + 1):
                yield from self.deliver_claim(world, number, request)
        for lease in world.known:
            for word in WORDS:
                yield from self.deliver_word(world, *lease, word)
        for n, unit in enumerate(world.units):
            for token in range(1, unit.token + 1):
                for name in SWEEP:
                    yield f"a sweeper says {name} of task {n} token {token}", self.hear(world, n, token, name)
                yield f"a beat for task {n} token {token} arrives", self.beat(world, n, token)
        yield "time passes", self.tick(world)
        yield from self.people(world)

    def worker_steps(self, world: World, number: int, worker: Worker) -> Iterator[Step]:
        who = f"worker {number}"
        if worker.lease is None and not worker.asking and worker.sent < self.bounds.claims:
            asking = worker._replace(sent=worker.sent + 1, asking=worker.sent + 1)
            yield f"{who} asks", self.put(world, number, asking)
        if worker.lease is not None or worker.asking:
            yield f"{who} crashes", self.put(world, number, Worker(sent=worker.sent))

    def deliver_claim(self, world: World, number: int, request: int) -> Iterator[Step]:
        after, lease = self.claim(world, number, request)
        who = f"claim {request} of worker {number} arrives"
        yield f"{who}, the answer is lost", after
        worker = after.workers[number]
        if worker.asking == request:
            known = after.known if lease is None else after.known | {lease}
            answered = self.put(after, number, worker._replace(asking=0, lease=lease))
            yield f"{who}: {lease}", answered._replace(known=known)

    def deliver_word(self, world: World, n: int, token: int, word: str) -> Iterator[Step]:
        after = self.hear(world, n, token, word)
        yield f"{word} of task {n} token {token} arrives, the answer is lost", after
        for number, worker in enumerate(after.workers):
            if worker.lease == (n, token):
                idle = self.put(after, number, worker._replace(lease=None))
                yield f"{word} of task {n} token {token} arrives and worker {number} hears the answer", idle

    def people(self, world: World) -> Iterator[Step]:
        if self.bounds.cancels and not world.cancel_asked and not world.status.is_final:
            yield "somebody cancels", self.cancel(world)
        if world.status in (Status.FAILED, Status.CANCELLED) and world.generation < self.bounds.generations:
            yield "somebody retries", self.retry(world)

    # -- the store ------------------------------------------------------------------------------

    def claim(self, world: World, number: int, request: int) -> tuple[World, tuple[int, int] | None]:
        for n, unit in enumerate(world.units):
            if unit.state is State.RUNNING and unit.request == (number, request):
                return world, (n, unit.token)
        for n, unit in enumerate(world.units):
            claimable = unit.state is State.READY and unit.wait == 0 and unit.token < self.bounds.tokens
            if claimable and not world.cancel_asked and not world.failing:
                granted = unit._replace(
                    state=State.RUNNING,
                    token=unit.token + 1,
                    tries=unit.tries + 1,
                    left=LEASE,
                    request=(number, request),
                )
                check_grant(world, n, granted, self.bounds.attempts)
                return self.set(world, n, granted), (n, granted.token)
        return world, None

    def verdict(self, unit: Unit, token: int, said: str, cancel_asked: bool, failing: bool) -> After | OutcomeRefused:
        """What the rules say; they are pure, so each case is asked once."""
        case = (unit, token, said, cancel_asked, failing)
        if case not in self._verdicts:
            end = None if unit.left is None else NOW + unit.left
            task = Task(
                id=TaskId(1),
                state=unit.state,
                token=unit.token,
                tries=unit.tries,
                losses=unit.losses,
                releases=unit.releases,
                max_attempts=self.bounds.attempts,
                lease_until=end,
                stops_at=end,
                cancel_asked=cancel_asked,
                failing=failing,
            )
            self._verdicts[case] = self.rules(task, FACTS[said], token, policy=self.policy, now=NOW, dice=Loaded())
        return self._verdicts[case]

    def hear(self, world: World, n: int, token: int, said: str) -> World:
        unit = world.units[n]
        verdict = self.verdict(unit, token, said, world.cancel_asked, world.failing)
        if isinstance(verdict, OutcomeRefused):
            check_refused(world, unit, token, said)
            return world
        check_heard(world, n, token, said, verdict)
        ended = unit._replace(
            state=verdict.state,
            tries=verdict.tries,
            losses=verdict.losses,
            releases=verdict.releases,
            left=None,
            wait=0 if verdict.ready_at is None else verdict.ready_at - NOW,
            request=None,
            ended=(token, said),
            commits=unit.commits + (verdict.state is State.DONE),
        )
        after = self.set(world, n, ended)
        if verdict.state.is_final:
            after = self.count(after, n, verdict.state)
            if verdict.state is State.ERROR:
                after = self.cancel_waiting(after._replace(failing=True))
            after = self.follow(after)
        return after

    def beat(self, world: World, n: int, token: int) -> World:
        unit = world.units[n]
        if unit.state is State.RUNNING and unit.token == token and unit.left:
            return self.set(world, n, unit._replace(left=LEASE))
        return world

    def tick(self, world: World) -> World:
        units = tuple(
            unit._replace(left=None if unit.left is None else max(0, unit.left - 1), wait=max(0, unit.wait - 1))
            for unit in world.units
        )
        return world._replace(units=units)

    def cancel(self, world: World) -> World:
        return self.follow(self.cancel_waiting(world._replace(cancel_asked=True)))

    def retry(self, world: World) -> World:
        reopened = (State.ERROR, State.CANCELLED)
        units = tuple(
            unit._replace(state=State.NEW, tries=0, losses=0, releases=0, wait=0) if unit.state in reopened else unit
            for unit in world.units
        )
        rows: list[StageRow] = []
        for row, unit, stage in zip(world.stages, units, self.graph.stages, strict=True):
            waits = sum(rows[self.graph.numbers[need]].state is not State.DONE for need in stage.needs)
            new = unit.state is State.NEW
            rows.append(StageRow(row.number, State.NEW if new else row.state, waits, 1, int(new)))
        fresh = world._replace(units=units, stages=tuple(rows), generation=world.generation + 1)
        return self.follow(fresh._replace(cancel_asked=False, failing=False, status=Status.PENDING))

    def cancel_waiting(self, world: World) -> World:
        for n, unit in enumerate(world.units):
            if unit.state in (State.NEW, State.READY):
                world = self.count(self.set(world, n, unit._replace(state=State.CANCELLED)), n, State.CANCELLED)
        return world

    def count(self, world: World, n: int, state: State) -> World:
        row = world.stages[n]
        row = row._replace(
            remaining=row.remaining - 1,
            failed=row.failed + (state is State.ERROR),
            cancelled=row.cancelled + (state is State.CANCELLED),
        )
        return world._replace(stages=(*world.stages[:n], row, *world.stages[n + 1 :]))

    def follow(self, world: World) -> World:
        halted = world.cancel_asked or world.failing
        result = advance(self.graph, world.stages, halted=halted, cancelled=world.cancel_asked)
        world = world._replace(stages=result.stages, status=result.status)
        for n in result.opened:
            world = self.set(world, n, world.units[n]._replace(state=State.READY))
        return world

    def set(self, world: World, n: int, unit: Unit) -> World:
        return world._replace(units=(*world.units[:n], unit, *world.units[n + 1 :]))

    def put(self, world: World, number: int, worker: Worker) -> World:
        return world._replace(workers=(*world.workers[:number], worker, *world.workers[number + 1 :]))
