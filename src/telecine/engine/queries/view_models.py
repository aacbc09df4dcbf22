"""What people see: plain values, ready for JSON (`dataclasses.asdict`). Times are `Instant`s, progress is 0…1."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Generic, TypeVar

from telecine.facts import Instant, Json, Millis

T = TypeVar("T")
Subject = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Page(Generic[T]):
    """Some rows, and where to go on: give `next` back as the cursor. None: that was all."""

    items: tuple[T, ...]
    next: str | None = None


@dataclass(frozen=True, slots=True)
class WorkerName:
    """A worker that worked on something. The name is None once its row is gone."""

    id: int
    name: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class StageView:
    """`state` is `running` while any of its tasks runs; `counts` are tasks by their stored state."""

    name: str
    title: str
    phase: str
    state: str
    needs: tuple[str, ...]
    optional: bool
    fan_out: bool
    total: int
    counts: dict[str, int]
    progress: float
    started_at: Instant | None
    ended_at: Instant | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """What one task returned."""

    stage: str
    position: int
    value: Json


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputFile:
    name: str
    stage: str
    position: int
    key: str
    size: int | None
    sha256: str
    facts: dict[str, Json]


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskProblem:
    """A task that ended in error. In an optional stage or position it is a warning of the job."""

    stage: str
    position: int
    code: str
    message: str
    attempt: int


@dataclass(frozen=True, slots=True, kw_only=True)
class JobLine:
    """A job as lists show it."""

    id: int
    flow: str
    owner: str
    subject: Subject | None
    status: str
    priority: int
    progress: float
    cancel_asked: bool
    generation: int
    version: int
    warning_count: int
    error: dict[str, Json] | None
    run_at: Instant | None
    created_at: Instant
    started_at: Instant | None
    ended_at: Instant | None


@dataclass(frozen=True, slots=True, kw_only=True)
class JobView(JobLine):
    """A job in full. `plan` gives the number of positions of each fanned-out stage that has been planned, `retries` the
    failed attempts after which another one follows, `phase` that of the stage in which a failed job failed.

    `outputs`, `warnings` and `results` hold the first hundred, results of the last stage first; `output_count` and
    `warning_count` tell how many there are.
    """

    flow_version: int
    phase: str
    spec: Json
    plan: dict[str, int]
    stages: tuple[StageView, ...]
    outputs: tuple[OutputFile, ...]
    output_count: int
    warnings: tuple[TaskProblem, ...]
    retries: int
    workers: tuple[WorkerName, ...]
    waits_for: tuple[int, ...]
    dedupe_key: str | None
    results: tuple[Result, ...] = ()
    archived_at: Instant | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptView:
    task_id: int
    stage: str
    position: int
    token: int
    generation: int
    attempt: int
    worker: WorkerName | None
    outcome: str
    state: str
    ready_at: Instant | None
    error: dict[str, Json] | None
    silent_ms: Millis | None
    started_at: Instant | None
    ended_at: Instant


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiting:
    """Why a task does not run yet. `reason` is the first that holds, `text` says it to people:

    `stopping` its job winds down · `after` its job comes after others · `needs` stages that have not ended ·
    `paused` its flow is paused · `parked` until a time · `no_worker` none that is alive serves its lane ·
    `queue` others are ahead (`ahead`, counted up to 10,000). `starts_at` is then a guess: by the slots of the workers
    that serve it and by how long such tasks took lately; None where nobody can tell.
    """

    reason: str
    text: str
    after: tuple[int, ...] = ()
    needs: tuple[str, ...] = ()
    until: Instant | None = None
    ahead: int | None = None
    capped: bool = False
    starts_at: Instant | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskView:
    """`state` is the stored one; `shown` is the word for people: a parked task is `retrying` or `scheduled`.

    `claim_state` is the same in six words: unclaimed, claimed, expired, completed, failed, retrying.
    """

    id: int
    job_id: int
    stage: str
    title: str
    position: int
    lane: str
    state: str
    shown: str
    claim_state: str
    optional: bool
    token: int
    attempt: int
    max_attempts: int
    losses: int
    releases: int
    ready_at: Instant | None
    worker: WorkerName | None
    claimed_at: Instant | None
    lease_until: Instant | None
    progress: float | None
    note: str | None
    input: Json
    result: Json
    error: dict[str, Json] | None
    ended_at: Instant | None
    waiting: Waiting | None = None
    attempts: tuple[AttemptView, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class LogLine:
    """A log line, or a step: a command with its exit code and the tail of its output in `data`."""

    id: int
    task_id: int
    stage: str
    position: int
    token: int
    at: Instant
    kind: str
    level: str
    message: str
    data: dict[str, Json] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class SubjectStatus:
    """How a subject stands, read off its jobs; when none is open, its facts decide.

    `processing` with activity and progress · `queued` with what holds it up · `retrying` with next time, attempt
    and last error · otherwise the word that the caller's rule finds in the facts.
    """

    status: str
    job_id: int | None = None
    activity: str | None = None
    progress: float | None = None
    waiting: Waiting | None = None
    next_at: Instant | None = None
    attempt: int | None = None
    max_attempts: int | None = None
    error: dict[str, Json] | None = None
    facts: dict[str, Json] = field(default_factory=dict)
    version: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class VersionView:
    """A published version. `left_at` is when another one took its place; `files` and `bytes` are what it names."""

    id: int
    number: int
    job_id: int
    current: bool
    keep: bool
    published_at: Instant
    left_at: Instant | None
    files: int
    bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SubjectLine:
    """A subject as lists show it: its facts, the number of the version that it shows, the newest of its jobs.

    `open_job` is the newest that has not ended; `job` may be a later one that has.
    """

    kind: str
    id: str
    owner: str
    facts: dict[str, Json]
    version: int | None
    created_at: Instant
    updated_at: Instant
    job: JobLine | None
    open_job: JobLine | None


@dataclass(frozen=True, slots=True, kw_only=True)
class SubjectView(SubjectLine):
    """A subject in full: its newest hundred versions and twenty jobs, the newest first."""

    versions: tuple[VersionView, ...]
    jobs: tuple[JobLine, ...]
