"""The models: what may be in a message, and how much of it."""

from __future__ import annotations

import json
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, field_validator

from telecine.facts import Mode, State
from telecine.json_limits import MAX_PIECES
from telecine.wire.scalars import WHOLE, Flag, Number, Real

FACTS_BYTES = 64 * 1024
MOST_LEASES = 1_000
MOST_LINES = 1_000
MOST_WAIT = 60.0

# PostgreSQL stores no NUL: what cannot be stored is replaced.
Clean = Annotated[str, AfterValidator(lambda text: text.replace("\0", "\ufffd"))]
Name = Annotated[Clean, Field(min_length=1, max_length=200)]
Label = Annotated[Clean, Field(min_length=1, max_length=200)]
Request = Annotated[str, Field(min_length=8, max_length=64, pattern=r"^[0-9A-Za-z_-]+$")]
Sha = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
Pair = tuple[Number, Number]


class Said(BaseModel):
    """Whatever travels: what is not known is refused."""

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)


def small(value: dict[str, Any], most: int, what: str) -> dict[str, Any]:
    if len(json.dumps(value)) > most:
        raise ValueError(f"{what} of over {most} bytes are not stored")
    return value


class Claim(Said):
    """Give me up to `wanted` tasks of these lanes (lane → flow); if there are none, wait for some so long."""

    worker: Number
    request: Request
    lanes: Annotated[dict[Clean, Clean], Field(max_length=1_000)]
    wanted: Annotated[int, Field(ge=1, le=MOST_LEASES), WHOLE] = 1
    wait: Annotated[Real, Field(ge=0, le=MOST_WAIT)] = 0.0


class Leases(Said):
    leases: list[dict[str, Any]]


class Held(Said):
    """A lease that the worker really holds, with its progress from 0 to 1."""

    task_id: Number
    token: Number
    progress: Real | None = None
    note: Annotated[str, Field(max_length=10_000)] | None = None


class Told(Said):
    """A log line, or a step: a command with its exit code and the end of its output."""

    task_id: Number
    token: Number
    message: Annotated[Clean, Field(max_length=10_000)]
    level: Annotated[str, Field(min_length=1, max_length=20)] = "info"
    kind: Literal["log", "step"] = "log"
    data: dict[str, Any] | None = None

    @field_validator("data")
    @classmethod
    def _bounded(cls, value: dict[str, Any] | None) -> dict[str, Any] | None:
        return None if value is None else small(value, FACTS_BYTES, "data of a line")


class Heartbeat(Said):
    """I live, and I hold these."""

    worker: Number
    held: Annotated[list[Held], Field(max_length=10_000)] = []
    load: Number = 0
    done: Number = 0
    failed: Number = 0
    lines: Annotated[list[Told], Field(max_length=MOST_LINES)] = []


class Progress(Said):
    """A heartbeat about one task."""

    worker: Number
    task_id: Number
    token: Number
    progress: Real | None = None
    note: Annotated[str, Field(max_length=10_000)] | None = None
    lines: Annotated[list[Told], Field(max_length=MOST_LINES)] = []


class Lines(Said):
    lines: Annotated[list[Told], Field(max_length=MOST_LINES)]


class OrdersSaid(Said):
    """What the worker must do: `lost` and `stop` name leases whose work must end now."""

    now: int
    mode: Mode
    renewed: list[Pair] = []
    lost: list[Pair] = []
    stop: list[Pair] = []
    why: str | None = Field(None, description="Why the mode is what it is, if the server itself decided so")


class OfLease(Said):
    """About one lease."""

    task_id: Number
    token: Number


class Shelves(OfLease):
    """What these stages of the job have kept; none named: all."""

    stages: Annotated[list[Name], Field(max_length=100)] = []


class KeptSaid(Said):
    """A checkpoint (a value), or an artifact whose bytes were stored before (key, size, SHA-256)."""

    name: Annotated[Clean, Field(min_length=1, max_length=500)]
    value: Any = None
    key: Annotated[Clean, Field(max_length=1_500)] | None = None
    size: Number | None = None
    sha256: Sha | None = None
    facts: dict[str, Any] = {}

    @field_validator("facts")
    @classmethod
    def _bounded(cls, value: dict[str, Any]) -> dict[str, Any]:
        return small(value, FACTS_BYTES, "facts of an artifact")


class Keep(OfLease):
    items: Annotated[list[KeptSaid], Field(min_length=1, max_length=1_000)]


class Link(OfLease):
    """Where may the bytes of this artifact go?"""

    name: Annotated[Clean, Field(min_length=1, max_length=500)]


class LinkSaid(Said):
    """An address for one PUT, valid as long as the lease and a little longer; none: send the bytes to the server."""

    key: str
    url: str | None = None


class PieceSaid(Said):
    input: Any = None
    optional: Flag = False
    labels: Annotated[list[Label], Field(max_length=100)] = []
    patience: Number | None = None


class DoneSaid(Said):
    result: Any = None
    facts: dict[str, Any] | None = None
    publish: Flag = False
    carry: Annotated[list[Number], Field(max_length=1_000_000)] = []
    leave: Annotated[list[Number], Field(max_length=1_000_000)] = []
    plan: dict[str, Annotated[list[PieceSaid], Field(max_length=MAX_PIECES)]] | None = None
    skip: Annotated[list[Name], Field(max_length=100)] = []
    stop: Flag = False

    @field_validator("facts")
    @classmethod
    def _bounded(cls, value: dict[str, Any] | None) -> dict[str, Any] | None:
        return None if value is None else small(value, FACTS_BYTES, "facts about a subject")


class Complete(OfLease, DoneSaid):
    """The task has succeeded."""


class FailedSaid(Said):
    message: Annotated[Clean, Field(max_length=10_000)]
    code: Annotated[Clean, Field(min_length=1, max_length=100)] = "failed"
    permanent: Flag = False


class Fail(OfLease, FailedSaid):
    """The task could not be done."""


class ReleasedSaid(Said):
    reason: Annotated[Clean, Field(max_length=200)] = "released"


class Release(ReleasedSaid):
    """The tasks are given back unharmed."""

    leases: Annotated[list[Pair], Field(min_length=1, max_length=MOST_LEASES)]


class WordSaid(OfLease):
    """One outcome among others: exactly one of the three."""

    done: DoneSaid | None = None
    failed: FailedSaid | None = None
    released: ReleasedSaid | None = None


class Settle(Said):
    words: Annotated[list[WordSaid], Field(min_length=1, max_length=MOST_LEASES)]


class OfWorker(Said):
    worker: Number


class AnswerSaid(Said):
    """The reply to one word; `accepted` is false when the fence or a cancel refused it, and `code` says which."""

    task_id: int
    token: int
    accepted: bool
    code: str
    state: State | None = None
    ready_at: int | None = None
    repeated: bool = False


class Answers(Said):
    answers: list[AnswerSaid]


class Digest(Said):
    """Size and SHA-256; while they are being computed, how far that is."""

    size: int
    sha256: str | None = None
    done: int = 0


class SourceSaid(Said):
    """A source on the server's disk. The identity changes when somebody writes to the file or replaces it."""

    size: int
    identity: list[int]
