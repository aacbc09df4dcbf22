"""The nouns: plain values that everything else passes around. Imports nothing of ours.

Time is an `Instant`: whole milliseconds since 1970 by the database's clock. Durations are
milliseconds too, so that no float ever decides who holds a lease. Values that are made for every single
task are named tuples, which cost a third of a frozen dataclass.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, NamedTuple, NewType

JobId = NewType("JobId", int)
TaskId = NewType("TaskId", int)
WorkerId = NewType("WorkerId", int)
Instant = int
Millis = int
Json = Any

SECOND: Millis = 1_000
MINUTE: Millis = 60 * SECOND
HOUR: Millis = 60 * MINUTE
DAY: Millis = 24 * HOUR

LEASE: Millis = 20 * SECOND
BEAT: Millis = 5 * SECOND
SWEEP: Millis = 2 * SECOND
ERROR_CHARS = 4_096


class State(StrEnum):
    """Where a task or a stage is. Only `running` has a lease."""

    NEW = "new"
    READY = "ready"
    RUNNING = "running"
    DONE = "done"
    ERROR = "error"
    CANCELLED = "cancelled"
    SKIPPED = "skipped"

    @property
    def is_final(self) -> bool:
        return self in FINAL


STATES = {state.value: state for state in State}
FINAL = frozenset({State.DONE, State.ERROR, State.CANCELLED, State.SKIPPED})


class Status(StrEnum):
    """What a job shows. The five in the middle are phases that its stages declare."""

    PENDING = "pending"
    VALIDATING = "validating"
    PLANNING = "planning"
    DOWNLOADING_INPUTS = "downloading_inputs"
    PROCESSING = "processing"
    UPLOADING_OUTPUTS = "uploading_outputs"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"

    @property
    def is_final(self) -> bool:
        return self in (Status.COMPLETED, Status.FAILED, Status.CANCELLED)


PHASES = (Status.VALIDATING, Status.PLANNING, Status.DOWNLOADING_INPUTS, Status.PROCESSING, Status.UPLOADING_OUTPUTS)

PRIORITIES = {"critical": 10, "high": 8, "normal": 5, "low": 2, "background": 0}


class Mode(StrEnum):
    """What an administrator, or the worker itself, has decided about a worker."""

    ACTIVE = "active"
    DRAINING = "draining"
    DISABLED = "disabled"


# -- What a worker, or recovery, says about a running task ---------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """One position of a fanned-out stage. With `patience`: skipped when no worker took it in that time."""

    input: Json = None
    optional: bool = False
    labels: tuple[str, ...] = ()
    patience: Millis | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    """The task has succeeded. Whatever follows from it commits with it, or not at all.

    `plan` names stages further down that fan out, and gives one `Piece` (or bare input) per position; `facts` are
    merged into the subject; `publish` gives this job's artifacts to a new version of the subject and makes it the
    current one; `carry` names artifacts of other jobs (by `StoredArtifact.id`) that belong to that version too, `leave`
    those of this job that do not, and are freed; `skip` names stages that need not run; `stop` skips all that is not
    ready.
    """

    result: Json = None
    facts: dict[str, Json] | None = None
    publish: bool = False
    carry: tuple[int, ...] = ()
    leave: tuple[int, ...] = ()
    plan: dict[str, list[Any]] | None = None
    skip: tuple[str, ...] = ()
    stop: bool = False


# What a handler that returns nothing has said; made once.
JUST_DONE = Done()


@dataclass(frozen=True, slots=True)
class Failed:
    """The handler could not do it. Retried by the stage's policy unless `permanent`."""

    message: str
    code: str = "failed"
    permanent: bool = False


@dataclass(frozen=True, slots=True)
class Released:
    """The worker gives the task back unharmed: drain, shutdown, disable, lost contact."""

    reason: str = "released"


@dataclass(frozen=True, slots=True)
class Expired:
    """Recovery: nobody renewed the lease, or the worker's process is provably gone."""

    gone: bool = False


@dataclass(frozen=True, slots=True)
class Overdue:
    """Recovery: the lease is alive but the work is not: `stalled` or `timed_out`."""

    code: str


Outcome = Done | Failed
Fact = Done | Failed | Released | Expired | Overdue


class LeaseOutcome(NamedTuple):
    """A fact about one lease: what `settle`, `release` and the sweep hand to the engine."""

    task_id: TaskId
    token: int
    fact: Fact


# -- Rows as values --------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """How a stage retries, and when it counts as stuck. Times in milliseconds."""

    max_attempts: int = 3
    base: Millis = 10 * SECOND
    cap: Millis = 5 * MINUTE
    jitter: float = 0.2
    permanent: tuple[str, ...] = ()
    stall: Millis | None = None
    limit: Millis | None = None


class Task(NamedTuple):
    """What the rules need to know about a task, read under its row lock."""

    id: TaskId
    state: State
    token: int
    tries: int = 0
    losses: int = 0
    releases: int = 0
    max_attempts: int = 3
    lease_until: Instant | None = None
    stops_at: Instant | None = None
    cancel_asked: bool = False
    failing: bool = False


class Lease(NamedTuple):
    """The right to work on a task, until `until`.

    `token` is the fence: it grows at every claim and never falls, and the store refuses a word
    whose token is not the current one, so a worker that woke too late changes nothing.
    """

    task_id: TaskId
    token: int
    worker: WorkerId
    until: Instant
    job_id: JobId
    flow: str
    stage: str
    version: int
    position: int
    attempt: int
    max_attempts: int
    spec: Json
    input: Json = None
    owner: str = ""
    subject: tuple[str, str] | None = None
    needs_brief: bool = False
    limit: Millis | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptArtifact:
    """An artifact or a checkpoint that outlives the lease that recorded it."""

    name: str
    token: int
    value: Json = None
    key: str | None = None
    size: int | None = None
    sha256: str | None = None
    facts: dict[str, Json] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredArtifact:
    """Something kept, and where: by which stage and position. `id` is its row, for `Done.carry` and `leave`."""

    stage: str
    position: int
    kept: KeptArtifact
    id: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Brief:
    """What a handler may read besides its own input: results of needed stages, what is kept.

    `slots` is how many tasks of this flow the live, active workers can run at once, `labels` what they offer.
    What was kept with a token up to `retried` was kept before a person's retry."""

    results: dict[str, Json] = field(default_factory=dict)
    kept: dict[str, KeptArtifact] = field(default_factory=dict)
    facts: dict[str, Json] = field(default_factory=dict)
    slots: int = 1
    labels: tuple[str, ...] = ()
    retried: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class LogEntry:
    """A log line, or a step (a command with exit code and output tail), of one attempt."""

    task_id: TaskId
    token: int
    message: str
    level: str = "info"
    kind: str = "log"
    data: dict[str, Json] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldLease:
    """A lease that a worker says it really holds, with its latest progress (0…1)."""

    task_id: TaskId
    token: int
    progress: float | None = None
    note: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Orders:
    """What a beat brings back. `lost` and `stop` name leases whose work must end now."""

    now: Instant
    mode: Mode
    renewed: tuple[tuple[TaskId, int], ...] = ()
    lost: tuple[tuple[TaskId, int], ...] = ()
    stop: tuple[tuple[TaskId, int], ...] = ()


class SettleReply(NamedTuple):
    """The reply to one word. `accepted` is false when the fence or a cancel refused it."""

    task_id: TaskId
    token: int
    accepted: bool
    code: str
    state: State | None = None
    ready_at: Instant | None = None
    repeated: bool = False
