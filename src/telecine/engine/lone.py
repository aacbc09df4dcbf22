"""The short way for jobs of one task: decide on what the claim said, write with guards, in one round trip.

A stage that stands alone and reports a plain success needs nothing that its claim did not already read:
its stage has one task, its job has no other stage. So the engine asks the same rules (`decide`,
`effect_of`) with the facts of the claim and lets the statement check that they still hold: token, state,
lease, and that the job does not wind down. What misses is settled the long way, from a fresh read.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from telecine.engine.consequences import Effect, Flags, Standing, effect_of
from telecine.engine.ledger import Ledger, Move, write_task
from telecine.engine.settle import digest_of
from telecine.facts import Answer, Done, State, Task, Word
from telecine.graph import Graph, StageRow
from telecine.lifecycle import After, decide
from telecine.retry import Dice
from telecine.store import Row, Steps, Write

MOST_REMEMBERED = 10_000


class Memory:
    """What claims said about lone tasks that are still out, oldest first."""

    def __init__(self) -> None:
        self._rows: dict[tuple[int, int], tuple[Row, Graph]] = {}

    def put(self, row: Row, graph: Graph) -> None:
        if len(graph.stages) == 1:
            self._rows[row["id"], row["token"]] = (row, graph)
            if len(self._rows) > MOST_REMEMBERED:
                del self._rows[next(iter(self._rows))]

    def take(self, word: Word) -> tuple[Row, Graph] | None:
        """What is known about this lease, if its word can go the short way."""
        known = self._rows.pop((word.task_id, word.token), None)
        fact = word.fact
        plain = isinstance(fact, Done) and not (fact.facts or fact.publish or fact.plan or fact.skip or fact.stop)
        return known if plain else None


@lru_cache(maxsize=256)
def _ending(graph: Graph) -> Effect:
    """What a job of one stage becomes when its one task is done."""
    phase = graph.stages[0].phase.value
    running = Standing(phase, phase, failing=False, stopped=False, warnings=0)
    before = (StageRow(0, State.READY, 0, 1, 1),)
    after = (StageRow(0, State.READY, 0, 1, 0),)
    return effect_of(graph, (before, after), (running, running), Flags())


def settle_lone(known: Sequence[tuple[Word, Row, Graph]], dice: Dice) -> Steps[dict[int, Answer]]:
    """Answers by task for the words that the guards let pass; the others are not in it."""
    ledger = Ledger(0)
    answers: dict[int, Answer] = {}
    for word, row, graph in sorted(known, key=lambda item: item[0].task_id):
        task = Task(
            word.task_id,
            State.RUNNING,
            word.token,
            row["tries"],
            row["losses"],
            row["releases"],
            row["max_attempts"],
            row["lease_until"],
        )
        policy = graph.stages[0].policy
        after = decide(task, word.fact, word.token, policy=policy, now=0, dice=dice)
        assert isinstance(after, After)
        write_task(ledger, Move(row, row, word.fact, after, digest_of(word.fact)))
        _write_job(ledger, row["job_id"], _ending(graph))
        answers[word.task_id] = Answer(word.task_id, word.token, True, after.outcome, after.state)
    groups = {"moves": ledger.moves, "stages": ledger.stages, "jobs": ledger.jobs, "events": ledger.events}
    passed = yield Write("settle", groups, {"at": None}, whole=True)
    return {row["id"]: answers[row["id"]] for row in passed}


def _write_job(ledger: Ledger, job_id: int, effect: Effect) -> None:
    for stage in effect.stages:
        ledger.stages.append({"job_id": job_id, **stage})
    if effect.job is not None:
        ledger.jobs.append({"id": job_id, **effect.job, "error": None})
    ledger.say(f"job.{effect.ended}", job_id)
