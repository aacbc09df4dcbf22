"""Kinds of values that many routes take: ids, names, times, pages. What cannot be one is refused before any work."""

from __future__ import annotations

import re
from typing import Annotated, Literal

from fastapi import Header, Path, Query
from pydantic import AfterValidator, Field

from telecine.engine.queries.timeline import MAX_ROWS
from telecine.errors import VersionMismatch
from telecine.facts import PRIORITIES
from telecine.wire.scalars import WHOLE

MAX_ID = 1 << 53
# Neither NUL nor a surrogate: a database could not hold them.
STORABLE = r"^[^\x00]*$"


_TAG = re.compile(r'"?([0-9]{1,16})"?')


def _priority(value: int | str) -> int | str:
    if isinstance(value, str) and value not in PRIORITIES:
        raise ValueError(f"use 0 to 10 or {', '.join(PRIORITIES)}")
    return value


Id = Annotated[int, Field(ge=1, le=MAX_ID), WHOLE]
Name = Annotated[str, Field(min_length=1, max_length=255, pattern=STORABLE, strict=True)]
Text = Annotated[str, Field(max_length=1_000, pattern=STORABLE, strict=True)]
Moment = Annotated[int, Field(ge=0, lt=MAX_ID, description="Milliseconds since 1970"), WHOLE]
Level = Annotated[int, Field(ge=0, le=10), WHOLE]
Priority = Annotated[
    Level | Annotated[str, Field(strict=True, json_schema_extra={"enum": list(PRIORITIES)})],
    AfterValidator(_priority),
    Field(description="0 (background) to 10 (critical), or a name", examples=["high", 8]),
]
Subject = Annotated[
    list[Name],
    Field(min_length=2, max_length=2, description="What the job is about: kind and id", examples=[["picture", "p-1"]]),
]

StatusName = Literal[
    "open", "pending", "validating", "planning", "downloading_inputs", "processing", "uploading_outputs", "completed",
    "failed", "cancelled",
]  # fmt: skip

JobPath = Annotated[int, Path(ge=1, le=MAX_ID, description="Number of the job", examples=[7])]
TaskPath = Annotated[int, Path(ge=1, le=MAX_ID, description="Number of the task", examples=[11])]
WorkerPath = Annotated[int, Path(ge=1, le=MAX_ID, description="Number of the worker", examples=[3])]
FlowPath = Annotated[
    str, Path(min_length=1, max_length=255, pattern=STORABLE, description="Name of the flow", examples=["thumbnails"])
]
KeyPath = Annotated[str, Path(pattern=r"^[0-9a-f]{12}$", description="Id of the key", examples=["1f0c9a3be27d"])]

Limit = Annotated[int, Query(ge=1, le=MAX_ROWS, description="How many at most", examples=[100])]
Cursor = Annotated[str | None, Query(max_length=600, description="`next` of the page before")]
Wanted = Annotated[str | None, Query(max_length=255, pattern=STORABLE)]
Since = Annotated[int | None, Query(ge=0, lt=MAX_ID, description="Submitted at or after, in milliseconds since 1970")]
Until = Annotated[int | None, Query(ge=0, lt=MAX_ID, description="Submitted before, in milliseconds since 1970")]

IdempotencyKey = Annotated[
    str | None,
    Header(
        alias="Idempotency-Key",
        min_length=1,
        max_length=200,
        pattern=r"^[\x21-\x7e]+$",
        description="The same key with the same body is answered with the same job; with another body it is refused",
    ),
]
IfMatch = Annotated[
    str | None,
    Header(
        alias="If-Match", max_length=200, description="`ETag` of the job as you know it; 412 if it was edited since"
    ),
]


def versions_in(if_match: str | None) -> set[int] | None:
    """The versions of a job of which one must be current; None: any. A weak tag never matches, as RFC 9110 demands."""
    if if_match is None or if_match.strip() == "*":
        return None
    tags = [tag.strip() for tag in if_match.split(",")]
    known = {int(found[1]) for tag in tags if (found := _TAG.fullmatch(tag))}
    if not known:
        raise VersionMismatch(f'If-Match takes the ETag of the job, such as "3", and no weak one: {if_match!r}')
    return known
