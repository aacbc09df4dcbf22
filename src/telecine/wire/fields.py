"""Field types and base classes of the messages between worker and server."""

from __future__ import annotations

import json
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from telecine.wire.scalars import Number

MAX_FACTS_BYTES = 64 * 1024
MAX_LEASES = 1_000
MAX_LINES = 1_000
MAX_WAIT_SECONDS = 60.0

# PostgreSQL cannot store NUL: it is replaced.
Clean = Annotated[str, AfterValidator(lambda text: text.replace("\0", "\ufffd"))]
Name = Annotated[Clean, Field(min_length=1, max_length=200)]
Label = Annotated[Clean, Field(min_length=1, max_length=200)]
RequestId = Annotated[str, Field(min_length=8, max_length=64, pattern=r"^[0-9A-Za-z_-]+$")]
Sha = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
Pair = tuple[Number, Number]


class WireRequest(BaseModel):
    """From a worker, which is not trusted: unknown fields are refused."""

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)


class WireResponse(BaseModel):
    """From a server, perhaps of a later release: unknown fields are ignored."""

    model_config = ConfigDict(extra="ignore", frozen=True)


def check_size(value: dict[str, Any], limit: int, what: str) -> dict[str, Any]:
    if len(json.dumps(value)) > limit:
        raise ValueError(f"{what} of over {limit} bytes are not stored")
    return value
