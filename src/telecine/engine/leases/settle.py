"""Hear words about leases: lock, decide, write. Every change of a running task goes through here.

One batch is one transaction of a few statements, whatever its size:

    1  lock the tasks in id order and read them                              (task_hold)
    2  lock their jobs in id order and read them                             (jobrows.hold_of)
    3  read the stages of those jobs, now that nobody else can move them     (stages_of)
       — decide each word, and what follows from it, in Python, purely —
    4  write tasks, attempts, stages, jobs and events                        (settle)
    5  open what became ready, if anything did                               (open_stages, task_add)

The locked reads are the guard: between it and the write nobody can change what the decision looked at,
so there is no second set of conditions in SQL that could drift from the rules.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from telecine.engine.jobs import carried_artifacts, job_rows
from telecine.engine.jobs.graph_cache import GraphCache
from telecine.engine.jobs.job_effects import Ripple, ripple
from telecine.engine.jobs.ledger import Move, is_required
from telecine.facts import (
    JUST_DONE,
    STATES,
    Done,
    Expired,
    Fact,
    Failed,
    LeaseOutcome,
    Overdue,
    Piece,
    SettleReply,
    State,
    Task,
    TaskId,
)
from telecine.graph import Graph, is_plain
from telecine.json_limits import MAX_PIECES, MAX_TASKS
from telecine.json_text import dumps
from telecine.lifecycle import After, decide
from telecine.retry import Dice
from telecine.store import Ask, Row, Steps


@dataclass(frozen=True, slots=True)
class Settled:
    """Answers in the order of the words, lanes that got work, jobs that ended."""

    answers: tuple[SettleReply, ...]
    lanes: frozenset[str] = frozenset()
    ended: tuple[int, ...] = ()


def settle(words: Sequence[LeaseOutcome], graph_cache: GraphCache, dice: Dice) -> Steps[Settled]:
    """Apply `words`; a refused one changes nothing, a repeated one gets its first answer."""
    rows = yield Ask("task_hold", {"ids": sorted({word.task_id for word in words})})
    jobs = {row["id"]: row for row in (yield from job_rows.hold_of(rows))}
    graphs = yield from graph_cache.fetch(job["flow_id"] for job in jobs.values())
    held = {row["id"]: (row, jobs[row["job_id"]]) for row in rows}
    carried = yield from carried_artifacts.hold(words)
    hearing = SettleState(held, graphs, dice, carried, (yield from _totals(words, held)))
    for place, word in enumerate(words):
        hearing.hear(place, word)
    hearing.halt()
    if hearing.unheard:
        yield from _answer_repeats(words, hearing.unheard, hearing.answers)
    done = (yield from ripple(hearing.moves, graphs)) if hearing.moves else Ripple()
    return Settled(tuple(hearing.answers[place] for place in range(len(words))), done.lanes, done.ended)


def _totals(words: Sequence[LeaseOutcome], held: Mapping[int, tuple[Row, Row]]) -> Steps[dict[int, int]]:
    """How many tasks the jobs have whose handlers plan more."""
    planned = [word.task_id for word in words if isinstance(word.fact, Done) and word.fact.plan]
    jobs = sorted({held[task_id][1]["id"] for task_id in planned if task_id in held})
    found: dict[int, int] = {}
    for row in (yield Ask("stages_of", {"ids": jobs})) if jobs else ():
        found[row["job_id"]] = found.get(row["job_id"], 0) + row["total"]
    return found


class SettleState:
    """Decides a batch of words one by one; a task that was moved once is not moved again."""

    def __init__(
        self,
        held: Mapping[int, tuple[Row, Row]],
        graphs: Mapping[int, Graph],
        dice: Dice,
        carried: carried_artifacts.Carried = carried_artifacts.NOTHING,
        totals: dict[int, int] | None = None,
    ) -> None:
        self.answers: dict[int, SettleReply] = {}
        self.moves: list[Move] = []
        self.unheard: list[int] = []
        self._held, self._graphs, self._dice, self._carried = held, graphs, dice, carried
        self._moved: dict[int, tuple[int, Move]] = {}
        self._totals = totals or {}  # tasks by job

    def hear(self, place: int, word: LeaseOutcome) -> None:
        if word.task_id in self._moved:
            first, move = self._moved[word.task_id]
            if move.row["token"] == word.token and move.digest == digest_of(word.fact):
                self.answers[place] = self.answers[first]
            else:
                self._refuse(place, word, "lease_lost")
            return
        found = self._held.get(word.task_id)
        verdict = "lease_lost" if found is None else self._decide(word, *found)
        if isinstance(verdict, str):
            self._refuse(place, word, verdict)
            return
        self.moves.append(verdict)
        self._moved[word.task_id] = (place, verdict)
        self.answers[place] = _accepted(word.task_id, word.token, verdict.after)

    def _refuse(self, place: int, word: LeaseOutcome, code: str) -> None:
        self.answers[place] = SettleReply(word.task_id, word.token, False, code)
        self.unheard.append(place)

    def halt(self) -> None:
        """A required error halts its job for the whole batch: whatever the order, nothing of it is tried again."""
        failing = {m.row["job_id"] for m in self.moves if m.after.state is State.ERROR and self._required(m)}
        if not failing:
            return
        for n, move in enumerate(self.moves):
            if move.row["job_id"] in failing and move.after.state is State.READY:
                word = LeaseOutcome(move.row["id"], move.row["token"], move.fact)
                again = self._decide(word, move.row, {**dict(move.job), "failing": True})
                assert isinstance(again, Move)
                self.moves[n] = again._replace(job=move.job, digest=move.digest)
                self._answer_anew(self._moved[word.task_id][0], _accepted(word.task_id, word.token, again.after))

    def _answer_anew(self, first: int, answer: SettleReply) -> None:
        old = self.answers[first]
        self.answers.update({place: answer for place, given in self.answers.items() if given is old})

    def _required(self, move: Move) -> bool:
        return is_required(self._graphs[move.job["flow_id"]], move)

    def _decide(self, word: LeaseOutcome, row: Row, job: Row) -> Move | str:
        graph = self._graphs[job["flow_id"]]
        fact = self._bounded(_checked(word.fact, row["stage"], graph), job)
        fact = carried_artifacts.checked(fact, job, self._carried)
        policy = graph.stages[row["stage"]].policy
        verdict = decide(task_of(row, job), fact, word.token, policy=policy, now=job["now"], dice=self._dice)
        if isinstance(verdict, After):
            return Move(row, job, fact, verdict, digest_of(word.fact))
        return verdict.code

    def _bounded(self, fact: Fact, job: Row) -> Fact:
        """A job has a limited number of tasks: a plan that goes beyond it is a bug of the handler."""
        if not isinstance(fact, Done) or not fact.plan:
            return fact
        planned = sum(map(len, fact.plan.values()))
        if planned > MAX_PIECES:
            return _bad_plan(f"it has {planned:,} pieces, and at most {MAX_PIECES:,} are taken: plan larger pieces")
        total = self._totals.get(job["id"], 0) + planned
        if total > MAX_TASKS:
            return _bad_plan(f"the job would have {total:,} tasks, and no job has more than {MAX_TASKS:,}")
        self._totals[job["id"]] = total
        return fact


def _accepted(task_id: TaskId, token: int, after: After) -> SettleReply:
    return SettleReply(task_id, token, True, after.outcome, after.state, after.ready_at)


def task_of(row: Row, job: Row) -> Task:
    return Task(
        id=row["id"],
        state=STATES[row["state"]],
        token=row["token"],
        tries=row["tries"],
        losses=row["losses"],
        releases=row["releases"],
        max_attempts=row["max_attempts"],
        lease_until=row["lease_until"],
        stops_at=row["stops_at"],
        cancel_asked=bool(job["cancel_asked"]),
        failing=bool(job["failing"]),
    )


def _checked(fact: Fact, number: int, graph: Graph) -> Fact:
    """A result that names stages which cannot follow is a bug of the handler: it fails, for good."""
    if not isinstance(fact, Done) or not (fact.plan or fact.skip):
        return fact
    for name in (*(fact.plan or ()), *fact.skip):
        target = graph.numbers.get(name)
        if target is None or not _downstream(graph, number, target):
            return _bad_plan(f"stage {name!r} does not come after {graph.stages[number].name!r}")
        if name in (fact.plan or ()) and not graph.stages[target].fan_out:
            return _bad_plan(f"stage {name!r} does not fan out: declare it with fan_out=True")
    for piece in (piece for pieces in (fact.plan or {}).values() for piece in pieces if isinstance(piece, Piece)):
        if bad := next((label for label in piece.labels if not is_plain(label)), None):
            return _bad_plan(f"label {bad!r} may not be empty, longer than 200 or contain / @ + or ,")
    return fact


def _bad_plan(why: str) -> Failed:
    return Failed(f"the handler's plan cannot be followed: {why}", code="bad_plan", permanent=True)


def _downstream(graph: Graph, start: int, target: int) -> bool:
    seen, frontier = {start}, [start]
    while frontier:
        for follower in graph.followers[frontier.pop()]:
            if follower not in seen:
                seen.add(follower)
                frontier.append(follower)
    return target in seen and target != start


def digest_of(fact: Fact) -> str:
    """Tells a repeated word from another one under the same token."""
    match fact:
        case Done() if fact is JUST_DONE or fact == JUST_DONE:
            return "done"
        case Done():
            plan = {k: [_plain(p) for p in v] for k, v in (fact.plan or {}).items()}
            body: object = [fact.result, fact.facts, fact.publish, plan, fact.skip, fact.stop, fact.carry, fact.leave]
        case Failed():
            body = [fact.message, fact.code, fact.permanent]
        case Expired() | Overdue():
            return ""
        case _:
            return "released"
    # Through JSON once, which makes text of every key: only then can they be sorted.
    text = json.dumps(json.loads(dumps(body)), sort_keys=True)
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


def _plain(piece: object) -> object:
    return [getattr(piece, name) for name in ("input", "optional", "labels")] if hasattr(piece, "labels") else piece


def _answer_repeats(
    words: Sequence[LeaseOutcome], places: Sequence[int], answers: dict[int, SettleReply]
) -> Steps[None]:
    """A stored outcome for this (task, token) with the same digest is the answer, also after expiry."""
    asked = [words[place] for place in places]
    rows = yield Ask("attempt_get", {"ids": [w.task_id for w in asked], "tokens": [w.token for w in asked]})
    stored: Mapping[tuple[int, int], Row] = {(row["task_id"], row["token"]): row for row in rows}
    for place in places:
        word = words[place]
        row = stored.get((word.task_id, word.token))
        if row is not None and row["digest"] and row["digest"] == digest_of(word.fact):
            state = State(row["state"])
            answers[place] = SettleReply(
                word.task_id, word.token, True, row["outcome"], state, row["ready_at"], repeated=True
            )
