"""How a worker comes: an administrator registers it, then each of its processes enlists."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field, field_validator

from telecine.errors import Refused
from telecine.wire.fields import Clean, Label, Name, RequestId, WireRequest, WireResponse, check_size
from telecine.wire.scalars import WHOLE, Real, Whole

VERSION = 1
# The name of the key, percent-encoded, with the terms: workers of wire version 1 refuse unknown fields.
NAME_HEADER = "X-Telecine-Worker"
MAX_ABOUT_BYTES = 10 * 1024  # of capabilities, and of metadata


class RegisterRequest(WireRequest):
    """What an administrator says of a worker-to-be."""

    name: Name = Field(examples=["attic"])
    days: Real | None = Field(None, gt=0, le=36_500, description="How long the key is valid; without it, until revoked")
    capabilities: dict[str, Any] = Field(default_factory=dict, description="What its machine can do: at most 10 KB")
    metadata: dict[str, Any] = Field(default_factory=dict, description="Whatever else is good to know: at most 10 KB")

    @field_validator("capabilities", "metadata")
    @classmethod
    def _bounded(cls, value: dict[str, Any]) -> dict[str, Any]:
        return check_size(value, MAX_ABOUT_BYTES, "capabilities and metadata")


class RegisterResponse(WireResponse):
    """The key, shown this once."""

    id: str
    name: str
    key: str
    expires_at: int | None


class TermsResponse(WireResponse):
    """What a worker must know before it begins."""

    version: int = VERSION
    release: str
    lease_ms: int
    trace: str | None = Field(None, description="From which the ids of traces are made, if the server traces")
    links: bool = Field(False, description="Bytes may go straight into the bucket: ask for a `link` first")
    shared: bool = Field(description="Artifacts are in a bucket, so a file on the server's disk is stored there, too")


def listed_name(key: str, own: str) -> str:
    """How a worker is listed: its key's name, and its own if that is another."""
    return own if own == key else f"{key}/{own}"


class EnlistRequest(WireRequest):
    """A worker process begins."""

    version: Whole = VERSION
    request: RequestId
    name: Name
    hostname: Annotated[Clean, Field(max_length=255)] = ""
    lanes: Annotated[list[Annotated[Clean, Field(max_length=700)]], Field(max_length=1_000)]
    slots: Annotated[int, Field(ge=1, le=10_000), WHOLE] = 1
    release: Annotated[Clean, Field(max_length=100)] = ""
    labels: Annotated[list[Label], Field(max_length=100)] = Field(default_factory=list)
    capabilities: dict[str, Any] = Field(default_factory=dict)
    metadata: dict[str, Any] = Field(default_factory=dict)

    @field_validator("capabilities", "metadata")
    @classmethod
    def _bounded(cls, value: dict[str, Any]) -> dict[str, Any]:
        return check_size(value, MAX_ABOUT_BYTES, "capabilities and metadata")


class EnlistResponse(WireResponse):
    worker: int


def check_version(version: int) -> None:
    if version != VERSION:
        raise WireVersionMismatch(
            f"this server speaks version {VERSION} of the workers' protocol, the worker version {version}: "
            "update whichever is older"
        )


class WireVersionMismatch(Refused):
    code = "wire_version"
