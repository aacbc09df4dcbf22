"""What a submit says, and what it may: the same for one job and for a thousand."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from telecine.api.http.context import ServerContext
from telecine.api.http.params import Id, Moment, Name, Priority, Subject
from telecine.api.routes.webhooks import WebhookReceiver, webhooks_of
from telecine.engine.accounts.keys import Caller
from telecine.engine.jobs.submit import Submission
from telecine.engine.jobs.submit_with_webhook import Hook, submit_telling
from telecine.errors import NotAllowed

MAX_AFTER = 100


class JobRequest(BaseModel):
    """A job to be done: one run of a flow."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={
            "examples": [
                {"flow": "thumbnails", "spec": {"source": "https://example.org/holiday.jpg"}, "priority": "high"}
            ]
        },
    )

    flow: Name = Field(description="Which flow; `GET /api/v1/flows` lists them")
    spec: Any = Field(
        None, description="What its handlers read, any JSON: a million characters, 64 levels deep at most"
    )
    subject: Subject | None = None
    priority: Priority = "normal"
    run_at: Moment | None = Field(None, description="Not before, in milliseconds since 1970")
    after: list[Id] = Field([], max_length=MAX_AFTER, description="Jobs that must complete first")
    skip: list[Name] = Field([], max_length=MAX_AFTER, description="Stages that need not run")
    dedupe_key: Name | None = Field(None, description="Joins an unfinished job with the same one")
    owner: Name | None = Field(None, description="Whose job it is, if an administrator submits it for somebody else")
    webhook: WebhookReceiver | None = Field(None, description="Who is told how it ends; its key is in the answer")


@dataclass(frozen=True, slots=True)
class JobSubmitted:
    """The job; `created` is false if it was there before: a repeat, or an unfinished twin. `webhook` is who is told of
    it, if that was asked for and the job had not ended before; its key signs what it gets."""

    id: int
    created: bool
    webhook: Hook | None = None


@dataclass(frozen=True, slots=True)
class JobState:
    """A job and its status after what was asked. What runs ends with its worker's next beat."""

    id: int
    status: str


async def submit_all(
    house: ServerContext, who: Caller, wanted: Sequence[JobRequest], key: str | None, batch: int = 0
) -> list[JobSubmitted]:
    """All or none."""
    for one in wanted:
        if (check := house.checks.get(one.flow)) is not None:
            await check(one.spec, who)
    some = [submission(one, who, _key(key, place), batch) for place, one in enumerate(wanted)]
    if all(one.webhook is None for one in wanted):
        return [JobSubmitted(made.job_id, made.created) for made in await house.engine.jobs.submit_many(some)]
    wishes = [None if one.webhook is None else one.webhook.wish(who.owner) for one in wanted]
    hooked = await submit_telling(house.engine, webhooks_of(house), list(zip(some, wishes, strict=True)))
    return [JobSubmitted(one.submitted.job_id, one.submitted.created, one.webhook) for one in hooked]


def _key(key: str | None, place: int) -> str | None:
    return f"{key}/{place}" if key is not None and place else key


def submission(one: JobRequest, who: Caller, key: str | None, batch: int = 0) -> Submission:
    if one.owner is not None and one.owner != who.owner and not who.is_admin:
        raise NotAllowed("only an administrator submits jobs for others: leave `owner` out")
    return Submission(
        flow=one.flow,
        spec=one.spec,
        owner=who.owner if one.owner is None else one.owner,
        subject=None if one.subject is None else (one.subject[0], one.subject[1]),
        priority=one.priority,
        run_at=one.run_at,
        after=tuple(one.after),
        skip=tuple(one.skip),
        key=key,
        dedupe_key=one.dedupe_key,
        within=who.sees,
        batch=batch,
    )
