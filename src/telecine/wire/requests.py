"""What a worker sends. Strict: a field that the server does not know is refused, and everything has bounds."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, field_validator

from telecine.json_limits import MAX_PIECES
from telecine.wire.fields import (
    MAX_FACTS_BYTES,
    MAX_LEASES,
    MAX_LINES,
    MAX_WAIT_SECONDS,
    Clean,
    Label,
    Name,
    Pair,
    RequestId,
    Sha,
    WireRequest,
    check_size,
)
from telecine.wire.scalars import WHOLE, Flag, Number, Real


class ClaimRequest(WireRequest):
    """Give me up to `wanted` tasks of these lanes (lane → flow); if there are none, wait for some so long."""

    worker: Number
    request: RequestId
    lanes: Annotated[dict[Clean, Clean], Field(max_length=1_000)]
    wanted: Annotated[int, Field(ge=1, le=MAX_LEASES), WHOLE] = 1
    wait: Annotated[Real, Field(ge=0, le=MAX_WAIT_SECONDS)] = 0.0


class HoldingMessage(WireRequest):
    """A lease that the worker really holds, with its progress from 0 to 1."""

    task_id: Number
    token: Number
    progress: Real | None = None
    note: Annotated[str, Field(max_length=10_000)] | None = None


class LogLineMessage(WireRequest):
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
        return None if value is None else check_size(value, MAX_FACTS_BYTES, "data of a line")


class HeartbeatRequest(WireRequest):
    """I live, and I hold these."""

    worker: Number
    held: Annotated[list[HoldingMessage], Field(max_length=10_000)] = Field(default_factory=list)
    load: Number = 0
    done: Number = 0
    failed: Number = 0
    lines: Annotated[list[LogLineMessage], Field(max_length=MAX_LINES)] = Field(default_factory=list)


class ProgressRequest(WireRequest):
    """A heartbeat about one task."""

    worker: Number
    task_id: Number
    token: Number
    progress: Real | None = None
    note: Annotated[str, Field(max_length=10_000)] | None = None
    lines: Annotated[list[LogLineMessage], Field(max_length=MAX_LINES)] = Field(default_factory=list)


class LogRequest(WireRequest):
    lines: Annotated[list[LogLineMessage], Field(max_length=MAX_LINES)]


class LeaseRequest(WireRequest):
    """About one lease."""

    task_id: Number
    token: Number


class ArtifactsRequest(LeaseRequest):
    """What these stages of the job have kept; none named: all."""

    stages: Annotated[list[Name], Field(max_length=100)] = Field(default_factory=list)


class KeptMessage(WireRequest):
    """A checkpoint (a value), or an artifact whose bytes were stored before (key, size, SHA-256)."""

    name: Annotated[Clean, Field(min_length=1, max_length=500)]
    value: Any = None
    key: Annotated[Clean, Field(max_length=1_500)] | None = None
    size: Number | None = None
    sha256: Sha | None = None
    facts: dict[str, Any] = Field(default_factory=dict)

    @field_validator("facts")
    @classmethod
    def _bounded(cls, value: dict[str, Any]) -> dict[str, Any]:
        return check_size(value, MAX_FACTS_BYTES, "facts of an artifact")


class KeepRequest(LeaseRequest):
    items: Annotated[list[KeptMessage], Field(min_length=1, max_length=1_000)]


class LinkRequest(LeaseRequest):
    """Where may the bytes of this artifact go?"""

    name: Annotated[Clean, Field(min_length=1, max_length=500)]


class PieceMessage(WireRequest):
    input: Any = None
    optional: Flag = False
    labels: Annotated[list[Label], Field(max_length=100)] = Field(default_factory=list)
    patience: Number | None = None


class DoneMessage(WireRequest):
    result: Any = None
    facts: dict[str, Any] | None = None
    publish: Flag = False
    carry: Annotated[list[Number], Field(max_length=1_000_000)] = Field(default_factory=list)
    leave: Annotated[list[Number], Field(max_length=1_000_000)] = Field(default_factory=list)
    plan: dict[str, Annotated[list[PieceMessage], Field(max_length=MAX_PIECES)]] | None = None
    skip: Annotated[list[Name], Field(max_length=100)] = Field(default_factory=list)
    stop: Flag = False

    @field_validator("facts")
    @classmethod
    def _bounded(cls, value: dict[str, Any] | None) -> dict[str, Any] | None:
        return None if value is None else check_size(value, MAX_FACTS_BYTES, "facts about a subject")


class CompleteRequest(LeaseRequest, DoneMessage):
    """The task has succeeded."""


class FailedMessage(WireRequest):
    message: Annotated[Clean, Field(max_length=10_000)]
    code: Annotated[Clean, Field(min_length=1, max_length=100)] = "failed"
    permanent: Flag = False


class FailRequest(LeaseRequest, FailedMessage):
    """The task could not be done."""


class ReleasedMessage(WireRequest):
    reason: Annotated[Clean, Field(max_length=200)] = "released"


class ReleaseRequest(ReleasedMessage):
    """The tasks are given back unharmed."""

    leases: Annotated[list[Pair], Field(min_length=1, max_length=MAX_LEASES)]


class OutcomeMessage(LeaseRequest):
    """One outcome among others: exactly one of the three."""

    done: DoneMessage | None = None
    failed: FailedMessage | None = None
    released: ReleasedMessage | None = None


class SettleRequest(WireRequest):
    words: Annotated[list[OutcomeMessage], Field(min_length=1, max_length=MAX_LEASES)]


class WorkerRequest(WireRequest):
    worker: Number
