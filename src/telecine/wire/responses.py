"""What the server answers to a worker.

Tolerant: a worker ignores fields that it does not know, so a later release of the server may add some. A field that a
worker needs is never removed without a new `VERSION`. The server sends no field that is not declared here.
"""

from __future__ import annotations

from typing import Any

from pydantic import Field

from telecine.facts import KeptArtifact, Mode, State, StoredArtifact
from telecine.wire.fields import Pair, WireResponse


class LeaseMessage(WireResponse):
    """The right to work on one task until `until`, and what its handler needs first."""

    task_id: int
    token: int
    worker: int
    until: int
    job_id: int
    flow: str
    stage: str
    version: int
    position: int
    attempt: int
    max_attempts: int
    spec: Any
    input: Any = None
    owner: str = ""
    subject: tuple[str, str] | None = None
    needs_brief: bool = False
    limit: int | None = None


class ClaimResponse(WireResponse):
    leases: list[LeaseMessage]


class BriefResponse(WireResponse):
    """What a handler may read besides its own input."""

    results: dict[str, Any]
    kept: list[KeptArtifact]
    facts: dict[str, Any]
    slots: int
    labels: list[str]
    retried: int


class ArtifactsResponse(WireResponse):
    """Artifacts and checkpoints, each with the stage and position that kept it."""

    shelved: list[StoredArtifact]


class OrdersResponse(WireResponse):
    """What the worker must do: `lost` and `stop` name leases whose work must end now."""

    now: int
    mode: Mode
    renewed: list[Pair] = Field(default_factory=list)
    lost: list[Pair] = Field(default_factory=list)
    stop: list[Pair] = Field(default_factory=list)
    why: str | None = Field(None, description="Why the mode is what it is, if the server itself decided so")


class LinkResponse(WireResponse):
    """An address for one PUT, valid as long as the lease and a little longer; none: send the bytes to the server."""

    key: str
    url: str | None = None


class AnswerMessage(WireResponse):
    """The reply to one word; `accepted` is false when the fence or a cancel refused it, and `code` says which."""

    task_id: int
    token: int
    accepted: bool
    code: str
    state: State | None = None
    ready_at: int | None = None
    repeated: bool = False


class SettleResponse(WireResponse):
    answers: list[AnswerMessage]


class DigestResponse(WireResponse):
    """Size and SHA-256; while they are being computed, how far that is."""

    size: int
    sha256: str | None = None
    done: int = 0


class SourceResponse(WireResponse):
    """A source on the server's disk. The identity changes when somebody writes to the file or replaces it."""

    size: int
    identity: list[int]


class StoredResponse(WireResponse):
    """The bytes are complete and stored."""

    key: str
    size: int
    sha256: str


class UploadOffset(WireResponse):
    """How many bytes have arrived: continue there."""

    offset: int
