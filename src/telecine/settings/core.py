"""What every process needs: where state and files are, how a worker works, what is logged."""

from __future__ import annotations

import json
import os
import socket
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from telecine.settings.addresses import redacted

BEATS_PER_LEASE = 3
SWEEPS_PER_LEASE = 5


def cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def split(value: object) -> object:
    """An environment variable cannot hold a list: names parted by commas."""
    return [part.strip() for part in value.split(",") if part.strip()] if isinstance(value, str) else value


class CoreSettings(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)

    database_url: str = Field(
        "sqlite:///.telecine/telecine.db",
        repr=False,
        description="The database that holds all state: sqlite:///path or postgresql://…",
    )
    pool_size: int = Field(4, ge=1, le=100, description="Connections to PostgreSQL that write; half as many more read")
    queue_mode: Literal["database", "redis", "hybrid"] = Field(
        "database",
        description="How wake-ups travel: `database`; `redis`, which must be there; `hybrid`, which may fail",
    )
    artifacts_url: str = Field(
        ".telecine/artifacts", repr=False, description="Where files that tasks keep are stored: a folder or s3://…"
    )
    s3_endpoint: str | None = Field(None, description="Address of an S3 server that is not Amazon's: https://…")
    s3_region: str | None = Field(None, description="Region of the bucket")
    s3_access_key_id: str | None = Field(
        None, repr=False, description="Who asks the bucket; without it, the usual AWS_* variables say so"
    )
    s3_secret_access_key: str | None = Field(None, repr=False, description="The secret that belongs to it")
    scratch: Path = Field(Path(".telecine/scratch"), description="Folder for the working files of running tasks")
    lease_seconds: float = Field(20.0, gt=0, description="How long a task stays with a worker that has gone quiet")
    beat_seconds: float = Field(5.0, gt=0, description="How often a worker renews its leases")
    sweep_seconds: float = Field(2.0, gt=0, description="How often the fleet looks for lost work")
    poll_seconds: float = Field(1.0, gt=0, description="How often a worker looks for work when no wake-up came")
    slots: int = Field(default_factory=cores, ge=1, le=10_000, description="Tasks that a worker runs at once")
    worker_name: str = Field(default_factory=socket.gethostname, min_length=1, description="Name of this worker")
    labels: tuple[str, ...] = Field((), description="What this worker can do beyond the ordinary, e.g. `gpu`")
    flows: tuple[str, ...] = Field((), description="Python modules whose flows are registered and served")
    apps: dict[str, dict[str, Any]] = Field({}, description="Settings of installed apps by name; JSON in a variable")
    drain_grace_seconds: float = Field(
        300.0, ge=0, description="How long a draining worker may finish before it gives its tasks back"
    )
    retention_days: float = Field(30.0, gt=0, description="How long finished jobs are kept before they are archived")
    log_level: Literal["debug", "info", "warning", "error"] = Field("info", description="Least level that is logged")
    log_format: Literal["text", "json"] = Field("text", description="How log lines look")

    @field_validator("labels", "flows", mode="before")
    @classmethod
    def _split(cls, value: object) -> object:
        return split(value)

    @field_validator("apps", mode="before")
    @classmethod
    def _sections(cls, value: object) -> object:
        try:
            return json.loads(value) if isinstance(value, str) else value
        except ValueError:
            raise ValueError('apps in a variable are JSON: {"thumbnails": {"width": 320}}') from None

    @field_validator("labels")
    @classmethod
    def _plain_labels(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        if bad := next((label for label in value if not label or set(label) & set("/@+,\n")), None):
            raise ValueError(f"label {bad!r} may not be empty or contain / @ + or ,")
        return value

    @field_validator("database_url")
    @classmethod
    def _known_database(cls, value: str) -> str:
        if not value.startswith(("sqlite:///", "postgresql://", "postgres://")) or value == "sqlite:///":
            raise ValueError(f"{redacted(value)!r} is not understood; use sqlite:///path or postgresql://host/name")
        return value

    @model_validator(mode="after")
    def _lease_outlasts_beats(self) -> CoreSettings:
        if self.lease_seconds < BEATS_PER_LEASE * self.beat_seconds:
            raise ValueError(
                f"a lease of {self.lease_seconds:g} s is too short for a beat every {self.beat_seconds:g} s: "
                f"lease_seconds must be at least {BEATS_PER_LEASE} × beat_seconds, so that one lost beat costs no work"
            )
        if self.lease_seconds < SWEEPS_PER_LEASE * self.sweep_seconds:
            raise ValueError(
                f"a lease of {self.lease_seconds:g} s is too short for a sweep every {self.sweep_seconds:g} s: "
                f"lease_seconds must be at least {SWEEPS_PER_LEASE} × sweep_seconds: else each pause is an outage"
            )
        return self
