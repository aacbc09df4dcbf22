"""How a server is, as it tells everybody who asks: numbers and plain words, no names, no places, no secrets."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

Word = Literal["ok", "unable", "off"]


class Told(BaseModel):
    model_config = ConfigDict(frozen=True)


class Health(Told):
    """Whether this server can serve; if not, why."""

    status: Word = Field(examples=["ok"])
    reasons: tuple[str, ...] = Field((), examples=[()], description="What is wrong; empty if nothing is")
    database: Word = Field(examples=["ok"])
    redis: Word = Field(examples=["off"], description="`off`: this server has none")
    active_workers: int | None = Field(None, examples=[3])
    pending_jobs: int | None = Field(None, examples=[12])


class FreeSpace(Told):
    """The disk under a folder; a bucket has no end, and none of these."""

    status: Word = Field(examples=["ok"])
    total_bytes: int | None = Field(None, examples=[500_000_000_000])
    free_bytes: int | None = Field(None, examples=[120_000_000_000])


class DatabaseHealth(Told):
    status: Word = Field(examples=["ok"])
    latency_ms: float | None = Field(None, examples=[0.7])
    schema_version: int | None = Field(None, examples=[7])


class Processing(Told):
    """Counts are exact up to 10,000."""

    jobs_pending: int = Field(examples=[12])
    jobs_in_progress: int = Field(examples=[4])
    tasks_ready: int = Field(examples=[90])
    tasks_running: int = Field(examples=[6])
    tasks_stale: int = Field(examples=[0])
    workers_active: int = Field(examples=[3])
    slots: int = Field(examples=[6])
    retry_rate: float = Field(examples=[0.02], description="Share of the latest attempts that are to be tried again")
    uploads_open: int = Field(examples=[1])


class FullHealth(Told):
    """The same, and in detail."""

    status: Word = Field(examples=["ok"])
    reasons: tuple[str, ...] = Field((), examples=[()])
    storage: dict[str, FreeSpace] = Field(description="By what lies there: `artifacts`, `uploads`, `scratch`")
    database: DatabaseHealth
    redis: Word = Field(examples=["off"])
    processing: Processing | None = None
