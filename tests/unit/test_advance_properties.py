"""Whatever the graph and however its tasks end, a job ends, in order, with the right word."""

from dataclasses import dataclass, field

from hypothesis import given, settings
from hypothesis import strategies as st

from telecine.facts import FINAL, PHASES, State, Status
from telecine.graph import Advance, Graph, StageRow, StageSpec, advance, build

SATISFIED = (State.DONE, State.SKIPPED)


@st.composite
def graphs(draw: st.DrawFn) -> Graph:
    stages: list[StageSpec] = []
    for number in range(draw(st.integers(1, 6))):
        needs = tuple(draw(st.sets(st.sampled_from([s.name for s in stages])))) if stages else ()
        lowest = max((PHASES.index(s.phase) for s in stages if s.name in needs), default=0)
        stages.append(
            StageSpec(
                name=f"s{number}",
                needs=needs,
                phase=PHASES[draw(st.integers(lowest, len(PHASES) - 1))],
                optional=draw(st.booleans()),
                fan_out=bool(needs) and draw(st.booleans()),
            )
        )
    return build("film", 1, stages)


@dataclass
class Play:
    """A job that is played to its end: counters and rows only, as the engine keeps them."""

    graph: Graph
    rows: list[StageRow] = field(default_factory=list)
    failing: bool = False
    cancelled: bool = False
    statuses: list[Status] = field(default_factory=list)
    opened: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.rows = [
            StageRow(n, State.NEW, len(s.needs), *((0, 0) if s.fan_out else (1, 1)))
            for n, s in enumerate(self.graph.stages)
        ]
        self.move()

    @property
    def halted(self) -> bool:
        return self.failing or self.cancelled

    def move(self, skip: frozenset[int] = frozenset()) -> None:
        result = advance(
            self.graph,
            tuple(self.rows),
            halted=self.halted,
            cancelled=self.cancelled,
            skip=skip,
        )
        self.check(result)
        self.rows = list(result.stages)
        self.statuses.append(result.status)
        self.opened.extend(result.opened)

    def check(self, result: Advance) -> None:
        for number in result.opened:
            assert not self.halted
            assert all(self.satisfied(result.stages[n]) for n in self.needs(number))
        for was, now in zip(self.rows, result.stages, strict=True):
            assert was.state not in FINAL or now.state is was.state
            if now.state is State.NEW:
                assert now.waits == sum(not self.satisfied(result.stages[n]) for n in self.needs(now.number))

    def needs(self, number: int) -> list[int]:
        return [self.graph.numbers[need] for need in self.graph.stages[number].needs]

    def satisfied(self, row: StageRow) -> bool:
        return row.state in SATISFIED or (row.state is State.ERROR and self.graph.stages[row.number].optional)

    def playable(self) -> list[int]:
        return [row.number for row in self.rows if row.state is State.READY and row.remaining]

    def end_task(self, number: int, state: State) -> None:
        row = self.rows[number]
        failed = row.failed + (state is State.ERROR)
        cancelled = row.cancelled + (state is State.CANCELLED)
        self.rows[number] = row._replace(remaining=row.remaining - 1, failed=failed, cancelled=cancelled)
        if state is State.ERROR and not self.graph.stages[number].optional:
            self.failing = True
            self.cancel_waiting()

    def cancel_waiting(self) -> None:
        for row in self.rows:
            if row.state is State.NEW:
                self.rows[row.number] = row._replace(remaining=0, cancelled=row.cancelled + row.remaining)

    def plan(self, number: int, count: int) -> None:
        row = self.rows[number]
        halted = self.halted
        if row.state is State.NEW:
            self.rows[number] = row._replace(
                total=row.total + count,
                remaining=row.remaining + (0 if halted else count),
                cancelled=row.cancelled + (count if halted else 0),
            )


def play(graph: Graph, data: st.DataObject) -> Play:
    job = Play(graph)
    while open_stages := job.playable():
        number = data.draw(st.sampled_from(open_stages))
        halted = job.halted
        ends = [State.DONE, State.ERROR] + ([State.CANCELLED] if halted else [])
        state = data.draw(st.sampled_from(ends))
        job.end_task(number, state)
        skip: frozenset[int] = frozenset()
        if state is State.DONE:
            for follower in graph.followers[number]:
                if graph.stages[follower].fan_out:
                    job.plan(follower, data.draw(st.integers(0, 2)))
            skip = data.draw(
                st.sets(st.sampled_from(graph.followers[number]), max_size=1).map(frozenset)
                if graph.followers[number]
                else st.just(frozenset())
            )
        if not job.cancelled and data.draw(st.integers(0, 9)) == 0:
            job.cancelled = True
            job.cancel_waiting()
        job.move(skip)
    return job


@settings(max_examples=200, deadline=None)
@given(graphs(), st.data())
def test_every_job_ends_in_order_and_with_the_right_word(graph: Graph, data: st.DataObject) -> None:
    job = play(graph, data)

    order = [list(Status).index(status) for status in job.statuses]
    assert order == sorted(order), "a status went back"
    assert all(row.remaining == 0 for row in job.rows), "the job ended with tasks left, or has not ended"
    assert len(job.opened) == len(set(job.opened)), "a stage opened twice"
    words = {(False, False): Status.COMPLETED, (True, False): Status.FAILED}
    assert job.statuses[-1] is words.get((job.failing, job.cancelled), Status.CANCELLED)
