"""One frozen `Settings`, read once at the edge.

Each value comes from the first that names it: the command line, a `TELECINE_*` variable, a TOML file
(`telecine.toml` in the current folder, or the one that `TELECINE_CONFIG` names), the default. A name that does not
exist is refused with the nearest one that does, so that no typo goes unnoticed. Functions receive the value
that they need, not this object.
"""

from __future__ import annotations

import json
import os
import re
import socket
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from ipaddress import ip_network
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from telecine.errors import BadSpec, UnknownSetting

PREFIX = "TELECINE_"
FILE = "telecine.toml"
# Names with our prefix that are no settings: where the file is, and what only the tests read.
NOT_SETTINGS = ("TELECINE_CONFIG", "TELECINE_TEST_")
BEATS_PER_LEASE = 3
SWEEPS_PER_LEASE = 5
SECRETS = ("s3_access_key_id", "s3_secret_access_key")

_PASSWORD = re.compile(r"(://[^:@/?#]*):.*@")
_SECRET = re.compile(r"([?&](?:[a-z_]*(?:password|secret|token|key)[a-z_]*)=)[^&]*", re.IGNORECASE)


def redacted(url: str) -> str:
    """The address without its secrets; rather too much is hidden than too little."""
    return _SECRET.sub(r"\1***", _PASSWORD.sub(r"\1:***@", url))


def cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _is_place(text: str) -> bool:
    try:
        ip_network(text, strict=False)
    except ValueError:
        return re.fullmatch(r"[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?", text) is not None
    return True


class Settings(BaseModel):
    """Everything that can be set. Making one reads no environment: see `load`."""

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)

    database_url: str = Field(
        "sqlite:///.telecine/telecine.db",
        repr=False,
        description="The database that holds all state: sqlite:///path or postgresql://…",
    )
    pool_size: int = Field(4, ge=1, le=100, description="Connections to PostgreSQL that write; half as many more read")
    queue_mode: str = Field("database", description="How wake-ups travel: `database`")
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
    drain_grace_seconds: float = Field(
        300.0, ge=0, description="How long a draining worker may finish before it gives its tasks back"
    )
    retention_days: float = Field(30.0, gt=0, description="How long finished jobs are kept before they are archived")
    media_nice: int = Field(0, ge=0, le=19, description="How far encoding yields to other processes; 19: most")
    version_days: float = Field(
        7.0, ge=0, description="How long the files of a version stay after another took its place"
    )
    ladder: str = Field("web-compact", description="The ladder of jobs that name none: `web-compact`, `web`, …")
    ladders: dict[str, Any] = Field({}, description="Ladders of your own: lists of rungs by name, JSON in a variable")
    segment_seconds: float = Field(6.0, gt=0, le=60, description="Length of a segment, rounded to whole frames")
    gop_seconds: float = Field(2.0, gt=0, le=20, description="From one keyframe to the next, rounded to whole frames")
    damaged: Literal["fail", "warn"] = Field("fail", description="What a damaged source leads to")
    max_source_bytes: int = Field(200 << 30, ge=1, description="Larger sources are refused")
    max_source_seconds: float = Field(12 * 3600.0, gt=0, description="Longer sources are refused")
    max_pixels: int = Field(8192 * 4608, ge=256, description="Sources with more pixels in a frame are refused")
    max_streams: int = Field(64, ge=1, description="Sources with more streams are refused")
    allow_private_sources: tuple[str, ...] = Field(
        (), description="Hosts, addresses or networks inside your own that sources may come from"
    )
    codec_threads: int | None = Field(
        None, ge=1, le=64, description="Threads of each decoder and encoder; none: the cores shared by the slots"
    )
    hardware_patience_seconds: float = Field(
        60.0, gt=0, description="How long a film waits for a worker with the hardware encoder it was planned for"
    )
    keep_completed_rungs: bool = Field(
        True,
        description="A person's retry of a failed film goes on with the segments that it has; false: makes them anew",
    )
    cleanup_partial_on_failure: bool = Field(
        False, description="Free the segments of unfinished rungs of films that failed; a retry makes them anew"
    )
    log_level: Literal["debug", "info", "warning", "error"] = Field("info", description="Least level that is logged")
    log_format: Literal["text", "json"] = Field("text", description="How log lines look")

    @field_validator("labels", "flows", "allow_private_sources", mode="before")
    @classmethod
    def _split(cls, value: object) -> object:
        """An environment variable cannot hold a list: names parted by commas."""
        return [part.strip() for part in value.split(",") if part.strip()] if isinstance(value, str) else value

    @field_validator("ladders", mode="before")
    @classmethod
    def _tables(cls, value: object) -> object:
        try:
            return json.loads(value) if isinstance(value, str) else value
        except ValueError:
            raise ValueError('ladders in a variable are JSON: {"tv": [{"height": 720, "kbps": 3000}]}') from None

    @field_validator("allow_private_sources")
    @classmethod
    def _places(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        if bad := next((place for place in value if not _is_place(place)), None):
            raise ValueError(f"{bad!r} is neither a host name nor an address nor a network such as 10.0.0.0/8")
        return value

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

    @field_validator("queue_mode")
    @classmethod
    def _known_mode(cls, value: str) -> str:
        if value in ("redis", "hybrid"):
            raise ValueError(f"{value!r} needs the Redis bell, which this release does not have yet; use 'database'")
        if value != "database":
            raise ValueError(f"{value!r} is not a queue mode; use 'database'")
        return value

    @model_validator(mode="after")
    def _segments_hold_gops(self) -> Settings:
        if self.gop_seconds > self.segment_seconds:
            raise ValueError(
                f"a segment of {self.segment_seconds:g} s is too short for keyframes every {self.gop_seconds:g} s: "
                "segment_seconds must be at least gop_seconds"
            )
        return self

    @model_validator(mode="after")
    def _lease_outlasts_beats(self) -> Settings:
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

    def shown(self, name: str) -> Any:
        """The value of a setting as it may be printed."""
        value = getattr(self, name)
        if name in SECRETS:
            return None if value is None else "***"
        if isinstance(value, Path):
            return str(value)
        return redacted(value) if isinstance(value, str) else value


@dataclass(frozen=True, slots=True)
class Loaded:
    """The settings, and for each the place that it came from."""

    settings: Settings
    sources: Mapping[str, str]


def load(
    environ: Mapping[str, str] | None = None,
    *,
    folder: Path | None = None,
    given: Mapping[str, Any] | None = None,
) -> Loaded:
    """Read the settings; `given` (what the command line says) wins over all else, unless it is None."""
    environ = os.environ if environ is None else environ
    layers = [
        _from_file(environ, folder or Path()),
        _from_environment(environ),
        {name: (value, "command line") for name, value in (given or {}).items() if value is not None},
    ]
    found: dict[str, tuple[Any, str]] = {}
    for layer in layers:
        found |= layer
    places = {name: place for name, (_, place) in found.items()}
    try:
        settings = Settings(**{name: value for name, (value, _) in found.items()})
    except ValidationError as error:
        raise BadSpec(_sentence(error, places)) from None
    return Loaded(settings, {name: places.get(name, "default") for name in Settings.model_fields})


def _from_environment(environ: Mapping[str, str]) -> dict[str, tuple[Any, str]]:
    known = {f"{PREFIX}{name.upper()}": name for name in Settings.model_fields}
    ours = [name for name in environ if name.startswith(PREFIX) and not name.startswith(NOT_SETTINGS)]
    _refuse_unknown(ours, known)
    # Compose files and service units pass an unset variable on as an empty one.
    return {known[name]: (environ[name], name) for name in ours if environ[name] != ""}


def _from_file(environ: Mapping[str, str], folder: Path) -> dict[str, tuple[Any, str]]:
    named = environ.get(f"{PREFIX}CONFIG")
    path = folder / (named or FILE)
    if not path.exists():
        if named:
            raise BadSpec(f"TELECINE_CONFIG names {named}, which does not exist")
        return {}
    try:
        content = tomllib.loads(path.read_text())
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise BadSpec(f"{path} cannot be read: {error}") from None
    _refuse_unknown(content, Settings.model_fields, f" in {path}")
    return {name: (value, str(path)) for name, value in content.items()}


def _refuse_unknown(names: Iterable[str], known: Iterable[str], where: str = "") -> None:
    known = list(known)
    for name in names:
        if name not in known:
            near = get_close_matches(name, known, n=1)
            hint = f"did you mean {near[0]}?" if near else "`telecine config` lists them all"
            raise UnknownSetting(f"unknown setting {name}{where}; {hint}")


def _sentence(error: ValidationError, places: Mapping[str, str]) -> str:
    """The first thing that is wrong, in one sentence, without the value: it may be a secret."""
    [first, *_] = error.errors()
    message = first["msg"].removeprefix("Value error, ")
    if not first["loc"]:
        return message
    name = str(first["loc"][0])
    place = places.get(name, "default")
    label = place if place.startswith(PREFIX) else f"{name} ({place})"
    return f"{label}: {message[:1].lower()}{message[1:]}"
