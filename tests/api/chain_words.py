"""What a WebSocket may say, as types: the fields of job chains, by the letter, and what we add to them."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter
from pydantic.alias_generators import to_camel


class Word(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, alias_generator=to_camel)


class Numbered(Word):
    id: str = Field(pattern=r"^\d+(\.\d+)?$")


class OfJob(Numbered):
    job_id: int
    entity_type: str | None
    entity_id: str | None
    at: int


class Queued(OfJob):
    type: Literal["job:queued"]
    job_type: str
    priority: int = Field(ge=0, le=10)


class Started(OfJob):
    type: Literal["job:started"]
    job_type: str
    worker_id: str


class Completed(OfJob):
    type: Literal["job:completed"]
    job_type: str


class Failure(OfJob):
    type: Literal["job:failed"]
    job_type: str
    error: str = Field(min_length=1)
    code: str
    will_retry: bool
    next_retry_at: int | None = None
    attempt: int = Field(ge=1)
    max_attempts: int = Field(ge=1)


class ChainEnd(OfJob):
    type: Literal["job:chain:completed", "job:chain:failed", "job:chain:cancelled"]
    duration: int = Field(ge=0)
    job_count: int = Field(ge=1)


class Progress(Word):
    type: Literal["job:progress"]
    job_id: int
    job_type: str
    entity_type: str | None
    entity_id: str | None
    progress: float = Field(ge=0, le=100)
    message: str | None = None


class Counts(Word):
    pending: int
    active: int
    completed: int
    failed: int
    workers: int
    throughput: int


class Stats(Counts):
    type: Literal["queue:stats"]


class Snapshot(Numbered):
    type: Literal["snapshot"]
    seq: int
    jobs: list[dict[str, Any]]
    more: bool
    stats: Counts
    workers: list[dict[str, Any]] | None = None


class Alive(Numbered):
    type: Literal["alive"]


class Reset(Numbered):
    type: Literal["reset"]
    seq: int
    detail: str


class WorkerState(Word):
    type: Literal["worker:online", "worker:offline", "worker:busy", "worker:idle"]
    worker_id: str
    worker_name: str | None


class Complaint(Word):
    type: Literal["error"]
    code: str
    detail: str


ANY: TypeAdapter[Any] = TypeAdapter(
    Annotated[
        Queued
        | Started
        | Completed
        | Failure
        | ChainEnd
        | Progress
        | Stats
        | Snapshot
        | Alive
        | Reset
        | WorkerState
        | Complaint,
        Field(discriminator="type"),
    ]
)
