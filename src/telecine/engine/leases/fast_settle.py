"""The short way for jobs of one task: decide on what the claim said, write with guards, in one round trip.

A stage that stands alone and reports a plain success needs nothing that its claim did not already read:
its stage has one task, its job has no other stage. So the engine asks the same rules (`decide`,
`effect_of`) with the facts of the claim and lets the statement check that they still hold: token, state,
lease, and that the job does not wind down (in PostgreSQL: that it is still nothing but this task). What
misses is settled the long way, from a fresh read.

All such words of one flow become the same, so the statement is told once what they become.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

from telecine.engine.jobs.job_effects import Flags, JobStanding, effect_of
from telecine.engine.leases.settle import digest_of
from telecine.facts import JUST_DONE, Done, Fact, LeaseOutcome, SettleReply, State, Task, TaskId
from telecine.graph import Graph, StageRow
from telecine.json_text import dumps
from telecine.lifecycle import After, decide
from telecine.store import Ask, Row, Rows, Steps

MAX_REMEMBERED = 10_000
Known = tuple[LeaseOutcome, Row]


class ClaimMemory:
    """What claims said about lone tasks that are still out, oldest first."""

    def __init__(self) -> None:
        self._rows: dict[tuple[int, int], Row] = {}
        self._graphs: dict[int, Graph] = {}

    def put(self, rows: Rows, graphs: Mapping[int, Graph]) -> None:
        alone = {flow_id: graph for flow_id, graph in graphs.items() if len(graph.stages) == 1}
        self._graphs |= alone
        self._rows.update(((row["id"], row["token"]), row) for row in rows if row["lone"] and row["flow_id"] in alone)
        while len(self._rows) > MAX_REMEMBERED:
            del self._rows[next(iter(self._rows))]

    def take(self, word: LeaseOutcome) -> Row | None:
        """What is known about this lease, if its word can go the short way."""
        known = self._rows.pop(word[:2], None)
        fact = word.fact
        if fact is JUST_DONE or (isinstance(fact, Done) and fact == Done(result=fact.result)):
            return known
        return None

    def graph(self, flow_id: int) -> Graph:
        """Of a flow whose rows it knows, or knew."""
        return self._graphs[flow_id]


class _NoDice:
    """A success asks for none."""

    def random(self) -> float:
        raise AssertionError("the rules rolled dice for a success")


class Ending(NamedTuple):
    """What a task that did what it should, its stage and its job become, and what is said of them."""

    state: str
    outcome: str
    task_kind: str
    stage_state: str
    status: str
    phase: str
    job_kind: str


@lru_cache(maxsize=256)
def ending_of(graph: Graph) -> Ending:
    """Asks the rules about one such task; the others differ in nothing that they look at."""
    running = Task(TaskId(0), State.RUNNING, 1, tries=1, lease_until=1)
    after = decide(running, Done(), 1, policy=graph.stages[0].policy, now=0, dice=_NoDice())
    assert isinstance(after, After)
    counters = (after.tries, after.losses, after.releases)
    assert counters == (running.tries, running.losses, running.releases), "the statement leaves the counters alone"
    assert (after.state, after.outcome) == (State.DONE, "done"), "the view `attempt` says so"
    phase = graph.stages[0].phase.value
    standing = JobStanding(phase, phase, failing=False, stopped=False, warnings=0)
    before = (StageRow(0, State.READY, 0, 1, 1),)
    counted = (StageRow(0, State.READY, 0, 1, 0),)
    effect = effect_of(graph, (before, counted), (standing, standing), Flags())
    [stage] = effect.stages
    assert effect.job is not None
    assert effect.ended is not None
    return Ending(
        state=after.state.value,
        outcome=after.outcome,
        task_kind=f"task.{after.state}",
        stage_state=stage["state"],
        status=effect.job["status"],
        phase=effect.job["phase"],
        job_kind=f"job.{effect.ended}",
    )


class FastSettled(NamedTuple):
    """Answers to the words that the guards let pass; their jobs, if somebody waits for one of them."""

    answers: list[SettleReply]
    ended: list[int]


def settle_lone(known: Sequence[Known], graph: Graph) -> Steps[FastSettled]:
    """All of the flow that has this graph."""
    ending = ending_of(graph)
    words = [word for word, _ in known]
    ids, tokens, facts = zip(*words, strict=True)
    plain = facts.count(JUST_DONE) == len(facts)
    digests = [digest_of(JUST_DONE)] * len(facts) if plain else [digest_of(fact) for fact in facts]
    results = [] if plain else [_result(fact) for fact in facts]
    told = None if plain else _told(ids, digests, results)
    params = {"ids": ids, "tokens": tokens, "digests": digests, "results": results, "told": told, **ending._asdict()}
    rows = yield Ask("settle_lone", params, whole=True)
    missed = {row["id"] for row in rows}
    state = State(ending.state)
    passed = [word for word in words if word.task_id not in missed] if missed else words
    answers = [SettleReply(word.task_id, word.token, True, ending.outcome, state) for word in passed]
    awaited = any(row["awaited"] for row in rows)
    return FastSettled(answers, [row["job_id"] for word, row in known if word.task_id not in missed] if awaited else [])


def _result(fact: Fact) -> str | None:
    return dumps(fact.result) if isinstance(fact, Done) and fact.result is not None else None


def _told(ids: Sequence[int], digests: Sequence[str], results: Sequence[str | None]) -> str:
    """By the id, what was said beyond `done`: in one text, which is taken apart only where there is something."""
    items = [
        f'"{task_id}": ["{digest}"{"" if result is None else f", {result}"}]'
        for task_id, digest, result in zip(ids, digests, results, strict=True)
        if digest != digest_of(JUST_DONE)
    ]
    return f"{{{', '.join(items)}}}"
