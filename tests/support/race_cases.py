"""Situations in which two transactions may meet, and what can be said in each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from telecine.engine import Submission
from telecine.engine.jobs import control, registration
from telecine.engine.jobs.submit import submit
from telecine.engine.leases import lease_operations, recovery
from telecine.engine.leases.claim import ClaimQuery, claim, unpark
from telecine.engine.leases.fast_settle import settle_lone
from telecine.engine.leases.settle import settle
from telecine.facts import (
    LEASE,
    MINUTE,
    Done,
    Expired,
    Fact,
    Failed,
    HeldLease,
    KeptArtifact,
    Lease,
    LeaseOutcome,
    Mode,
    Released,
)
from telecine.graph import Graph
from telecine.worker_facts import NO_TOTALS
from tests.support.builders import Loaded, a_flow, a_stage
from tests.support.engine_fixture import Bed
from tests.support.interleaver import Make

FILM = a_flow(a_stage("plan"), a_stage("cut", "plan", fan_out=True), a_stage("join", "cut"))
LONE = a_flow("sing", name="opera")


@dataclass
class Situation:
    """What a scene has brought forth, and the words that can be said about it."""

    bed: Bed
    job_id: int = 0
    leases: list[Lease] = field(default_factory=list)
    others: list[int] = field(default_factory=list)
    request: str = "r"

    @property
    def shelf(self) -> Any:
        return self.bed.engine.graph_cache

    def word(self, fact: Fact, n: int = 0) -> Make:
        return self.words((n, fact))

    def words(self, *said: tuple[int, Fact]) -> Make:
        some = [LeaseOutcome(self.leases[n].task_id, self.leases[n].token, fact) for n, fact in said]
        return lambda: settle(some, self.shelf, Loaded())

    def lone(self, n: int = 0) -> Make:
        lease = self.leases[n]
        word = LeaseOutcome(lease.task_id, lease.token, Done())
        row = {
            "id": lease.task_id,
            "job_id": lease.job_id,
            "tries": 1,
            "max_attempts": lease.max_attempts,
            "lease_until": lease.until,
            "token": lease.token,
            "stage": 0,
        }
        return lambda: settle_lone([(word, row)], LONE.graph)

    def claim(self, worker: int | None = None, wanted: int = 1, request: str | None = None) -> Make:
        who = self.bed.worker if worker is None else worker
        ask = ClaimQuery(who, request or f"{self.request} of {who}", self.bed.lanes, wanted, LEASE)
        return lambda: claim(ask)

    def beat(self, n: int = 0) -> Make:
        held = [HeldLease(task_id=self.leases[n].task_id, token=self.leases[n].token, progress=0.5)]
        return lambda: lease_operations.beat(self.bed.worker, held, NO_TOTALS, LEASE)

    def keep(self, n: int = 0) -> Make:
        lease, item = self.leases[n], KeptArtifact(name="at", token=1, value=1)
        return lambda: lease_operations.keep(lease.task_id, lease.token, [item], self.shelf)

    def cancel(self) -> Make:
        return lambda: control.cancel(self.job_id, self.shelf)

    def retry(self) -> Make:
        return lambda: control.retry(self.job_id, self.shelf)

    def resume(self) -> Make:
        return lambda: control.resume(self.job_id, self.shelf)

    def wind_down(self) -> Make:
        return lambda: control.wind_down(self.job_id, self.shelf)

    def edit(self) -> Make:
        later = self.bed.now + MINUTE
        return lambda: control.edit(self.job_id, self.shelf, version=None, priority=9, run_at=later)

    def mode(self, mode: Mode) -> Make:
        return lambda: registration.mode(self.bed.worker, mode, False)

    def submit(self, **options: Any) -> Make:
        flow_id, graph = self.bed.engine.jobs._flows["opera"]
        wanted: list[tuple[Submission, int, Graph]] = [(Submission(flow="opera", **options), flow_id, graph)]
        return lambda: submit(wanted)


Words = dict[str, Callable[[Situation], Make]]


async def running(bed: Bed, pieces: int, taken: int) -> Situation:
    """Of `pieces` positions, `taken` are running; the rest is ready."""
    job_id = await bed.submit("film")
    await bed.done(await bed.take(), plan={"cut": list(range(pieces))})
    return Situation(bed, job_id, await bed.claim(taken))


async def three_pieces(bed: Bed) -> Situation:
    return await running(bed, 3, 2)


async def last_two_pieces(bed: Bed) -> Situation:
    return await running(bed, 2, 2)


async def a_failing_job(bed: Bed) -> Situation:
    """The third piece has failed for good; the first two still run."""
    situation = await running(bed, 3, 3)
    await bed.fail(situation.leases[2], permanent=True)
    return situation


async def a_nearly_failed_job(bed: Bed) -> Situation:
    """The second piece has failed for good, the third is cancelled; the first still runs."""
    situation = await running(bed, 3, 2)
    await bed.fail(situation.leases[1], permanent=True)
    return situation


async def a_lone_lease(bed: Bed) -> Situation:
    job_id = await bed.submit("opera")
    return Situation(bed, job_id, await bed.claim())


async def two_jobs(bed: Bed) -> Situation:
    jobs = [await bed.submit("film") for _ in range(2)]
    return Situation(bed, jobs[0], await bed.claim(2))


async def a_ready_job(bed: Bed) -> Situation:
    return Situation(bed, await bed.submit("opera"))


async def a_ready_job_with_rows(bed: Bed) -> Situation:
    return Situation(bed, await bed.submit("opera", subject=("voice", "high")))


async def a_due_job(bed: Bed) -> Situation:
    job_id = await bed.submit("opera", run_at=bed.now + 1_000)
    bed.pass_time(1_000)
    return Situation(bed, job_id)


async def a_failed_job(bed: Bed) -> Situation:
    job_id = await bed.submit("opera", dedupe_key="d")
    lease = await bed.take()
    await bed.fail(lease, permanent=True)
    return Situation(bed, job_id, [lease])


async def a_job_after_two(bed: Bed) -> Situation:
    before = [await bed.submit("opera") for _ in range(2)]
    job_id = await bed.submit("opera", after=tuple(before))
    for lease in await bed.claim(2):
        await bed.store.run(
            lambda lease=lease: settle([LeaseOutcome(lease.task_id, 1, Done())], bed.engine.graph_cache, Loaded())
        )
    return Situation(bed, job_id, others=before)


async def nothing_yet(bed: Bed) -> Situation:
    return Situation(bed)


HELD: Words = {
    "done": lambda s: s.word(Done()),
    "failed": lambda s: s.word(Failed("no")),
    "hopeless": lambda s: s.word(Failed("no", permanent=True)),
    "released": lambda s: s.word(Released()),
    "gone": lambda s: s.word(Expired(gone=True)),
    "beat": lambda s: s.beat(),
    "keep": lambda s: s.keep(),
    "cancel": lambda s: s.cancel(),
}
READY: Words = {
    "claim": lambda s: s.claim(),
    "the other's claim": lambda s: s.claim(s.bed.bob),
    "cancel": lambda s: s.cancel(),
    "edit": lambda s: s.edit(),
    "drain": lambda s: s.mode(Mode.DRAINING),
    "pause": lambda s: lambda: control.pause("opera", True),
}
# scene -> (how it comes about, what may be said in it)
SCENES: dict[str, tuple[Callable[[Bed], Any], Words]] = {
    "a piece is held": (
        three_pieces,
        HELD | {"claim": lambda s: s.claim(), "edit": lambda s: s.edit(), "resume": lambda s: s.resume()},
    ),
    "the last two pieces are held": (
        last_two_pieces,
        {
            "done": lambda s: s.word(Done()),
            "the other done": lambda s: s.word(Done(), 1),
            "the other hopeless": lambda s: s.word(Failed("no", permanent=True), 1),
            "the other gone": lambda s: s.word(Expired(gone=True), 1),
            "cancel": lambda s: s.cancel(),
            "resume": lambda s: s.resume(),
        },
    ),
    "a job winds down": (
        a_failing_job,
        {
            "resume": lambda s: s.resume(),
            "both gone": lambda s: s.words((0, Expired(gone=True)), (1, Expired(gone=True))),
            "both, and a late word": lambda s: s.words((0, Done()), (1, Failed("no")), (2, Done())),
            "done": lambda s: s.word(Done()),
            "hopeless": lambda s: s.word(Failed("no", permanent=True)),
            "claim": lambda s: s.claim(),
            "beat": lambda s: s.beat(),
            "keep": lambda s: s.keep(),
            "edit": lambda s: s.edit(),
            "cancel": lambda s: s.cancel(),
            "wind down": lambda s: s.wind_down(),
        },
    ),
    "its last task runs while a job winds down": (
        a_nearly_failed_job,
        {
            "resume": lambda s: s.resume(),
            "done": lambda s: s.word(Done()),
            "failed": lambda s: s.word(Failed("no")),
            "released": lambda s: s.word(Released()),
            "gone": lambda s: s.word(Expired(gone=True)),
            "claim": lambda s: s.claim(),
            "cancel": lambda s: s.cancel(),
        },
    ),
    "a lone task is held": (a_lone_lease, {"lone": lambda s: s.lone(), **HELD}),
    "two jobs are held": (
        two_jobs,
        {
            "both, one way": lambda s: s.words((0, Done()), (1, Done())),
            "both, the other way": lambda s: s.words((1, Failed("no")), (0, Released())),
            "cancel": lambda s: s.cancel(),
            "grace": lambda s: lambda: recovery.take_turn(-1, -1),
            "claim": lambda s: s.claim(),
        },
    ),
    "a task is ready": (a_ready_job, READY),
    "a task is ready whose job has rows": (a_ready_job_with_rows, READY),
    "a task is due": (
        a_due_job,
        {
            "unpark": lambda s: unpark,
            "claim": lambda s: s.claim(),
            "cancel": lambda s: s.cancel(),
            "edit": lambda s: s.edit(),
        },
    ),
    "a job has failed": (
        a_failed_job,
        {
            "retry": lambda s: s.retry(),
            "resume": lambda s: s.resume(),
            "a late word": lambda s: s.word(Done()),
            "the twin": lambda s: s.submit(dedupe_key="d"),
            "claim": lambda s: s.claim(),
            "cancel": lambda s: s.cancel(),
        },
    ),
    "others have ended": (
        a_job_after_two,
        {
            "one": lambda s: lambda: control.resolve_after(s.job_id, [(s.others[0], "completed")], s.shelf),
            "the other": lambda s: lambda: control.resolve_after(s.job_id, [(s.others[1], "completed")], s.shelf),
            "a failed one": lambda s: lambda: control.resolve_after(s.job_id, [(s.others[1], "failed")], s.shelf),
            "cancel": lambda s: s.cancel(),
        },
    ),
    "somebody submits": (
        nothing_yet,
        {
            "with a key": lambda s: s.submit(key="k"),
            "with another body": lambda s: s.submit(key="k", spec=1),
            "with a dedupe key": lambda s: s.submit(dedupe_key="d"),
            "with both": lambda s: s.submit(key="k", dedupe_key="d"),
        },
    ),
}
