"""The engine once more, in memory."""

from __future__ import annotations

from collections.abc import Sequence

from telecine.engine.leases.settle import digest_of
from telecine.facts import HOUR, LEASE, Done, Expired, Fact, Mode, Overdue, Released, State, Status, Task, TaskId
from telecine.graph import StageRow, advance
from telecine.lifecycle import After, decide
from tests.model.rows import Job, Lease, Place, Work
from tests.support.builders import NOW, Loaded


class Model:
    def __init__(self) -> None:
        self.now = NOW
        self.pulse = NOW
        self.jobs: dict[int, Job] = {}
        self.work: dict[Place, Work] = {}
        self.modes: dict[int, Mode] = {}
        self.requests: dict[int, str] = {}
        self.paused: set[str] = set()
        self._numbers: dict[Place, int] = {}
        self.said: dict[tuple[Place, int], tuple[str, tuple[object, ...]]] = {}

    # -- jobs -----------------------------------------------------------------------------------

    def submit(self, job_id: int, flow: str, priority: int, run_at: int | None) -> None:
        job = self.jobs[job_id] = Job(job_id, flow, priority, run_at)
        for number, stage in enumerate(job.graph.stages):
            if not stage.fan_out:
                self._add(job, number, 0)
        job.stages = tuple(
            StageRow(n, State.NEW, len(s.needs), *((0, 0) if s.fan_out else (1, 1)))
            for n, s in enumerate(job.graph.stages)
        )
        self._follow(job)

    def _add(self, job: Job, number: int, position: int, state: State = State.NEW) -> None:
        place = (job.id, number, position)
        self.work[place] = Work(place, job.flow, state)

    def of(self, job: Job) -> list[Work]:
        return [work for work in self.work.values() if work.place[0] == job.id]

    def cancel(self, job_id: int) -> str:
        job = self.jobs[job_id]
        if job.status.is_final:
            return "cancelled" if job.status is Status.CANCELLED else "WrongState"
        job.cancel_asked = True
        self._cancel_waiting(job)
        self._follow(job)
        return job.status.value

    def retry(self, job_id: int) -> str | None:
        job = self.jobs[job_id]
        if job.status not in (Status.FAILED, Status.CANCELLED):
            return "WrongState"
        for work in self.of(job):
            if work.state in (State.ERROR, State.CANCELLED):
                work.state, work.tries, work.losses, work.releases, work.best = State.NEW, 0, 0, 0, 0.0
        rows: list[StageRow] = []
        for old, stage in zip(job.stages, job.graph.stages, strict=True):
            own = [work for work in self.of(job) if work.place[1] == old.number]
            left = sum(work.state is State.NEW for work in own)
            settled = old.state in (State.DONE, State.SKIPPED) and not left
            done = (State.DONE, State.SKIPPED)
            waits = sum(rows[job.graph.numbers[need]].state not in done for need in stage.needs)
            rows.append(StageRow(old.number, old.state if settled else State.NEW, waits, len(own), left))
        job.stages = tuple(rows)
        job.generation += 1
        job.cancel_asked = job.failing = False
        job.warnings, job.status = 0, Status.PENDING
        self._follow(job)
        return None

    def edit(self, job_id: int, priority: int) -> str | None:
        job = self.jobs[job_id]
        if job.status.is_final:
            return "WrongState"
        for work in self.of(job):
            if work.state in (State.READY, State.RUNNING):
                work.rank += (job.priority - priority) * HOUR
        job.priority = priority
        return None

    # -- the worker's words ---------------------------------------------------------------------

    def claim(self, worker: int, request: str, wanted: int, numbers: dict[Place, int]) -> list[Lease]:
        self._numbers = numbers  # of the tasks: they decide who comes first at the same moment
        found = self._claim(worker, request, wanted)
        if len(found) < wanted:
            self.unpark()
            found = found or self._claim(worker, request, wanted)
        return [(work.place, work.token) for work in found]

    def _claim(self, worker: int, request: str, wanted: int) -> list[Work]:
        again = [w for w in self.running() if (w.worker, w.request) == (worker, request)]
        if again:
            return sorted(again, key=lambda work: (work.rank, self._numbers[work.place]))
        if self.modes[worker] is not Mode.ACTIVE or self.requests.get(worker) == request:
            return []
        able = [w for w in self.work.values() if w.state is State.READY and not w.parked and w.flow not in self.paused]
        chosen = sorted(able, key=lambda work: (work.rank, self._numbers[work.place]))[:wanted]
        for work in chosen:
            self._grant(work, worker, request)
        return chosen

    def _grant(self, work: Work, worker: int, request: str) -> None:
        job = self.jobs[work.place[0]]
        policy = job.graph.stages[work.place[1]].policy
        work.state, work.token, work.tries = State.RUNNING, work.token + 1, work.tries + 1
        work.worker, work.request, work.claimed_at = worker, request, self.now
        work.lease_until, work.progress = self.now + LEASE, None
        work.stops_at = None if policy.stall is None else self.now + policy.stall
        self.requests[worker] = request
        if job.status is Status.PENDING:
            job.status = self._phase(job)

    def running(self) -> list[Work]:
        return [work for work in self.work.values() if work.state is State.RUNNING]

    def is_out(self, lease: Lease) -> bool:
        return (self.work[lease[0]].state, self.work[lease[0]].token) == (State.RUNNING, lease[1])

    def beat(self, worker: int, held: Sequence[tuple[Lease, float | None]]) -> tuple[set[Lease], set[Lease]]:
        renewed, stop = set(), set()
        for (place, token), progress in held:
            work = self.work[place]
            alive = work.state is State.RUNNING and work.token == token and work.worker == worker
            if not alive or work.lease_until is None or work.lease_until <= self.now:
                continue
            work.lease_until = self.now + LEASE
            stall = self.jobs[place[0]].graph.stages[place[1]].policy.stall
            if progress is not None:
                if stall is not None and (progress > work.best or progress != work.progress):
                    work.stops_at = self.now + stall
                if progress > work.best:
                    work.losses, work.best = 0, progress
                work.progress = progress
            renewed.add((place, token))
            if self.jobs[place[0]].halted:
                stop.add((place, token))
        return renewed, stop

    def keep(self, lease: Lease, value: object) -> bool:
        work = self.work[lease[0]]
        if work.state is not State.RUNNING or work.token != lease[1] or (work.lease_until or 0) <= self.now:
            return False
        if value not in work.kept:
            work.kept, work.losses = {value}, 0
        stall = self.jobs[work.place[0]].graph.stages[work.place[1]].policy.stall
        work.stops_at = None if stall is None else self.now + stall
        return True

    def settle(self, words: Sequence[tuple[Lease, Fact]]) -> list[tuple[object, ...]]:
        """Answers: accepted, code, state, ready_at. At most one word about each task."""
        verdicts = [self._decide(lease, fact) for lease, fact in words]
        failing = {
            lease[0][0]
            for (lease, _), verdict in zip(words, verdicts, strict=True)
            if isinstance(verdict, After) and verdict.state is State.ERROR and not self._optional(lease[0])
        }
        answers, touched, plans = [], {}, []
        for (lease, fact), first in zip(words, verdicts, strict=True):
            verdict = first
            place, _ = lease
            if isinstance(verdict, After) and verdict.state is State.READY and place[0] in failing:
                verdict = self._decide(lease, fact, failing=True)
            if not isinstance(verdict, After):
                stored = self.said.get(lease)
                known = stored is not None and stored[0] != "" and stored[0] == digest_of(fact)
                answers.append(stored[1] if known and stored else (False, verdict.code, None, None))
                continue
            self._end(self.work[place], verdict)
            answers.append((True, verdict.outcome, verdict.state, verdict.ready_at))
            self.said[lease] = (digest_of(fact), answers[-1])
            job = touched[place[0]] = self.jobs[place[0]]
            if verdict.state.is_final:
                self._count(job, place, verdict.state)
            if verdict.state is State.DONE and isinstance(fact, Done):
                plans.append((job, fact))
        for job in touched.values():
            newly = job.id in failing and not job.failing
            job.failing = job.failing or job.id in failing
            for planned in [fact for owner, fact in plans if owner is job]:
                self._plan(job, planned)
            if newly:
                self._cancel_waiting(job)
            self._follow(job)
        return answers

    def _decide(self, lease: Lease, fact: Fact, failing: bool = False) -> object:
        place, token = lease
        work, job = self.work[place], self.jobs[place[0]]
        policy = job.graph.stages[place[1]].policy
        task = Task(
            id=TaskId(0),
            state=work.state,
            token=work.token,
            tries=work.tries,
            losses=work.losses,
            releases=work.releases,
            max_attempts=policy.max_attempts,
            lease_until=work.lease_until,
            stops_at=work.stops_at,
            cancel_asked=job.cancel_asked,
            failing=job.failing or failing,
        )
        return decide(task, fact, token, policy=policy, now=self.now, dice=Loaded())

    def _optional(self, place: Place) -> bool:
        return self.jobs[place[0]].graph.stages[place[1]].optional

    def _end(self, work: Work, verdict: After) -> None:
        work.state, work.tries, work.losses = verdict.state, verdict.tries, verdict.losses
        work.releases, work.worker, work.request = verdict.releases, None, None
        work.lease_until = work.stops_at = None
        if verdict.ready_at is not None:
            work.ready_at, work.parked = verdict.ready_at, verdict.ready_at > self.now

    def _count(self, job: Job, place: Place, state: State) -> None:
        row = job.stages[place[1]]
        row = row._replace(
            remaining=row.remaining - 1,
            failed=row.failed + (state is State.ERROR),
            cancelled=row.cancelled + (state is State.CANCELLED),
        )
        self._set(job, row)
        job.warnings += state is State.ERROR and self._optional(place)

    def _set(self, job: Job, row: StageRow) -> None:
        job.stages = (*job.stages[: row.number], row, *job.stages[row.number + 1 :])

    def _plan(self, job: Job, done: Done) -> None:
        for name, pieces in (done.plan or {}).items():
            row = job.stages[job.graph.numbers[name]]
            if row.state is not State.NEW:
                continue
            state = State.CANCELLED if job.failing else State.NEW
            for position in range(row.total, row.total + len(pieces)):
                self._add(job, row.number, position, state)
            n, lost = len(pieces), len(pieces) if job.failing else 0
            grown = row._replace(total=row.total + n, remaining=row.remaining + n - lost)
            self._set(job, grown._replace(cancelled=row.cancelled + lost))

    def _cancel_waiting(self, job: Job) -> None:
        for work in self.of(job):
            if work.state in (State.NEW, State.READY):
                work.state, work.parked = State.CANCELLED, False
                row = job.stages[work.place[1]]
                self._set(job, row._replace(remaining=row.remaining - 1, cancelled=row.cancelled + 1))

    def _phase(self, job: Job) -> Status:
        return advance(job.graph, job.stages, halted=job.halted, cancelled=job.cancel_asked).status

    def _follow(self, job: Job) -> None:
        result = advance(job.graph, job.stages, halted=job.halted, cancelled=job.cancel_asked)
        job.stages = result.stages
        if result.status.is_final or job.status is not Status.PENDING:
            job.status = result.status
        for work in self.of(job):
            number, position = work.place[1:]
            if number in result.opened and work.state is State.NEW:
                work.state = State.READY
                work.ready_at = max(self.now, job.run_at or 0)
                work.parked = work.ready_at > self.now
                work.rank = work.ready_at + position * job.graph.stages[number].cost - job.priority * HOUR

    # -- recovery -------------------------------------------------------------------------------

    def unpark(self) -> None:
        for work in self.work.values():
            if work.state is State.READY and work.parked and (work.ready_at or 0) <= self.now:
                work.parked = False

    def sweep(self, period: int) -> None:
        if (silent := self.now - self.pulse) < period:
            return
        self.pulse = self.now
        if silent > LEASE // 2:
            for work in [work for work in self.running() if not self.now - period <= work.claimed_at <= self.now]:
                work.lease_until = self.now + LEASE
                if work.stops_at is not None:
                    work.stops_at += min(silent, self.now - work.claimed_at)
        else:
            words: list[tuple[Lease, Fact]] = []
            for work in self.running():
                expired, late = (work.lease_until or 0) <= self.now, (work.stops_at or self.now + 1) <= self.now
                if expired or late:
                    words.append(((work.place, work.token), Expired() if expired else Overdue("stalled")))
            self.settle(words)
        for worker in [worker for worker, mode in self.modes.items() if mode is Mode.DISABLED]:
            self.give_back(worker, Released("disabled"))
        self.unpark()

    def give_back(self, worker: int, fact: Fact) -> None:
        held = [work for work in self.running() if work.worker == worker]
        self.settle([((work.place, work.token), fact) for work in held])
