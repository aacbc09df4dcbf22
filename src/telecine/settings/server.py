"""The server: where it listens, whom it lets in, what it tells the outside; Redis beside it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Literal

from pydantic import Field, field_validator, model_validator

from telecine.settings.addresses import is_place
from telecine.settings.core import split
from telecine.settings.media import MediaSettings

ORIGIN = re.compile(r"https?://(\[[0-9A-Fa-f:.]+\]|[^\s/:@?#\[\]]+)(:[0-9]{1,5})?/?", re.IGNORECASE)
AlertKind = Literal[
    "stale_job_recovered", "job_max_retries_exceeded", "job_failed_pattern", "worker_startup", "worker_shutdown"
]


class ServerSettings(MediaSettings):
    host: str = Field("127.0.0.1", min_length=1, description="Address that `telecine serve` listens on")
    port: int = Field(8484, ge=0, le=65_535, description="Port that it listens on; 0: any that is free")
    public_url: str | None = Field(
        None, description="Address under which browsers and workers reach it, if not http://host:port"
    )
    trusted_proxies: tuple[str, ...] = Field(
        (), description="Addresses or networks of proxies whose X-Forwarded-* headers are believed"
    )
    allowed_origins: tuple[str, ...] = Field((), description="Other web pages that may ask: https://example.org, …")
    open_media: bool = Field(
        False, description="Published videos are served to everybody; false: only to whoever has a key or a link"
    )
    playback_hours: float = Field(
        12.0, gt=0, le=8_760, description="How long a signed playback link works, rounded up to a full hour"
    )
    rate_limit: int = Field(1_200, ge=1, description="Requests that a key may make in a minute")
    worker_rate_limit: int = Field(
        60_000, ge=1, description="Requests that the workers of one key may make together in a minute"
    )
    bad_key_limit: int = Field(
        60, ge=1, description="Requests without a valid key that an address may make in a minute"
    )
    max_keys_per_owner: int = Field(100, ge=1, description="Valid keys that an owner may have; the CLI is not bound")
    max_body_bytes: int = Field(1 << 20, ge=1_024, description="Larger JSON bodies are refused before they are read")
    max_connections: int = Field(
        4_096, ge=1, description="Connections at once; fewer where the limit of open files is low"
    )
    max_connections_per_address: int = Field(
        1_024,
        ge=1,
        description="Connections at once from one address; `trusted_proxies` and this machine are not bound",
    )
    header_timeout_seconds: float = Field(20.0, gt=0, description="How long the head of a request may take to arrive")
    body_timeout_seconds: float = Field(
        60.0, gt=0, description="A body that brings less than 1 KiB in this time, or an unread response, is given up"
    )
    max_streams_per_key: int = Field(50, ge=1, description="Event streams that a key may have open at once")
    stale_seconds: float = Field(3_600.0, gt=0, description="A task that is ready for longer is listed as stale")
    min_worker_release: str | None = Field(None, description="Workers of older releases drain: they get no more work")
    uploads: Path = Field(Path(".telecine/uploads"), description="Folder for uploads that have not come to their end")
    upload_hours: float = Field(24.0, gt=0, description="How long an unfinished upload waits for its next byte")
    upload_reserve_bytes: int = Field(1 << 30, ge=0, description="Free space that uploads leave on the disk")
    upload_quota_bytes: int = Field(
        0, ge=0, description="Bytes that an owner may have: unfinished uploads and sources of videos; 0: no limit"
    )
    source_folders: tuple[str, ...] = Field(
        (), description="Folders, or s3:// prefixes, whose files owners may name as sources; administrators: any"
    )
    watch: tuple[str, ...] = Field((), description="Folders whose new films are transcoded by themselves")
    watch_settle_seconds: float = Field(
        10.0, gt=0, description="A file in a watched folder is taken when it has not changed for so long"
    )
    redis_url: str | None = Field(None, repr=False, description="Redis for wake-ups and hints: redis://host:6379/0")
    redis_pool_size: int = Field(10, ge=1, le=1_000, description="Connections to Redis at most")
    redis_timeout_seconds: float = Field(1.0, gt=0, description="How long Redis may take to answer")
    alert_webhook_url: str | None = Field(None, repr=False, description="Where alerts are sent; none: nowhere")
    alert_format: Literal["plain", "slack", "discord"] = Field("plain", description="Shape of the alerts")
    alert_kinds: tuple[AlertKind, ...] = Field(
        ("stale_job_recovered", "job_max_retries_exceeded", "job_failed_pattern"),
        description="Which alerts are sent; `worker_startup` and `worker_shutdown` can be added",
    )
    alert_cooldown_seconds: float = Field(300.0, ge=0, description="Pause between two alerts of one kind")
    alert_pattern_failures: int = Field(3, ge=2, description="So many failed attempts of one subject are a pattern")
    webhook_timeout_seconds: float = Field(10.0, gt=0, le=60, description="How long a receiver may take to answer")
    webhook_attempts: int = Field(8, ge=1, le=50, description="How often a delivery is tried before it is given up")
    webhook_backoff_seconds: float = Field(
        10.0,
        gt=0,
        le=3_600,
        description="Pause after a delivery's first failed try; each further one is 4 times as long",
    )
    allow_private_webhooks: tuple[str, ...] = Field(
        (), description="Hosts, addresses or networks inside your own that webhooks may go to"
    )
    metrics_token: str | None = Field(
        None, repr=False, description="Bearer token for /metrics; without it, an admin's key, or this machine"
    )
    trace_endpoint: str | None = Field(
        None, description="OTLP/HTTP collector for traces: http://host:4318; needs the extra `tracing`"
    )
    server_url: str | None = Field(None, description="Server that a worker without a database talks to")
    key_file: Path | None = Field(None, description="File with the key of that worker")

    @field_validator(
        "trusted_proxies",
        "allowed_origins",
        "source_folders",
        "watch",
        "alert_kinds",
        "allow_private_webhooks",
        mode="before",
    )
    @classmethod
    def _split_lists(cls, value: object) -> object:
        return split(value)

    @field_validator("trusted_proxies", "allow_private_webhooks")
    @classmethod
    def _known_places(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        if bad := next((place for place in value if not is_place(place)), None):
            raise ValueError(f"{bad!r} is neither a host name nor an address nor a network such as 10.0.0.0/8")
        return value

    @field_validator("allowed_origins")
    @classmethod
    def _origins(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for origin in value:
            if origin != "*" and not ORIGIN.fullmatch(origin):
                raise ValueError(f"{origin!r} is no origin: write its scheme and host alone, https://example.org")
        return tuple(origin.rstrip("/") for origin in value)

    @field_validator("public_url", "server_url", "alert_webhook_url", "trace_endpoint")
    @classmethod
    def _web_address(cls, value: str | None) -> str | None:
        if value is not None and not value.startswith(("http://", "https://")):
            raise ValueError("an address begins with http:// or https://")
        return value.rstrip("/") if value else value

    @model_validator(mode="after")
    def _redis_is_named(self) -> ServerSettings:
        if self.queue_mode != "database" and self.redis_url is None:
            raise ValueError(f"queue_mode is {self.queue_mode!r}, so redis_url must say where Redis is")
        return self
