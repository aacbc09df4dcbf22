"""The same for many jobs, by their ids or by a filter. Bounded work per call; a cursor goes on."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import Annotated, Any

from fastapi import Body
from pydantic import BaseModel, ConfigDict, Discriminator, Field, Tag
from starlette.responses import Response

from telecine.api.http.auth import Owner
from telecine.api.http.context import Here, ServerContext
from telecine.api.http.json_response import answer
from telecine.api.http.params import Id, IdempotencyKey, Moment, Name, Priority, StatusName, Subject
from telecine.api.http.problems import answers
from telecine.api.http.routing import Router
from telecine.api.openapi.examples import JOINED, shown_as
from telecine.api.routes.submit_request import JobRequest, JobSubmitted, submit_all
from telecine.engine.accounts.keys import Caller
from telecine.engine.jobs.bulk import Sum
from telecine.engine.queries.job_lists import JobFilter
from telecine.engine.queries.ownership import OwnedJob
from telecine.facts import Status
from telecine.wire.scalars import WHOLE

router = Router(prefix="/api/v1/bulk", tags=["bulk"])
PROBLEMS = answers(401, 403, 422, 429)

MAX_JOBS = 1_000
MAX_AT_ONCE = 500


class Jobs(BaseModel):
    """Jobs to be submitted together: all of them, or none."""

    model_config = ConfigDict(
        extra="forbid", json_schema_extra={"examples": [{"jobs": [{"flow": "thumbnails"}, {"flow": "thumbnails"}]}]}
    )

    jobs: list[JobRequest] = Field(min_length=1, max_length=MAX_JOBS)


@dataclass(frozen=True, slots=True)
class BulkSubmitted:
    """In the order in which they were given."""

    jobs: tuple[JobSubmitted, ...]


class Filter(BaseModel):
    """As in the list of jobs; without any field: all that the caller may see."""

    model_config = ConfigDict(extra="forbid")

    status: StatusName | None = None
    flow: Name | None = None
    owner: Name | None = None
    subject: Subject | None = None
    since: Moment | None = None
    until: Moment | None = None

    def as_wanted(self) -> JobFilter:
        subject = None if self.subject is None else (self.subject[0], self.subject[1])
        plain = {"status": self.status, "flow": self.flow, "owner": self.owner}
        return JobFilter(**plain, subject=subject, since=self.since, until=self.until)


class ByIds(BaseModel):
    """These jobs."""

    model_config = ConfigDict(extra="forbid", json_schema_extra={"examples": [{"ids": [7, 8]}]})

    ids: list[Id] = Field(min_length=1, max_length=MAX_AT_ONCE)


class ByFilter(BaseModel):
    """Up to `limit` jobs that pass the filter, in the order of the list; `cursor` is `next` of the answer before."""

    model_config = ConfigDict(extra="forbid", json_schema_extra={"examples": [{"filter": {"status": "failed"}}]})

    filter: Filter
    cursor: Annotated[str, Field(max_length=600)] | None = None
    limit: Annotated[int, Field(ge=1, le=MAX_AT_ONCE), WHOLE] = 100


class PriorityByIds(ByIds):
    model_config = ConfigDict(json_schema_extra={"examples": [{"ids": [7, 8], "priority": "high"}]})

    priority: Priority


class PriorityByFilter(ByFilter):
    model_config = ConfigDict(json_schema_extra={"examples": [{"filter": {"flow": "thumbnails"}, "priority": 2}]})

    priority: Priority


def _which(given: Any) -> str | None:
    """By which of the two somebody chooses, so that what is wrong is told of that one only."""
    ways = {"ids": "ByIds", "filter": "ByFilter"}
    named = [way for name, way in ways.items() if isinstance(given, dict) and name in given]
    return named[0] if len(named) == 1 else None


EITHER = Discriminator(_which, custom_error_type="either", custom_error_message="give `ids` or a `filter`, one of them")
Choice = Annotated[Annotated[ByIds, Tag("ByIds")] | Annotated[ByFilter, Tag("ByFilter")], EITHER, Body()]
PriorityChoice = Annotated[
    Annotated[PriorityByIds, Tag("ByIds")] | Annotated[PriorityByFilter, Tag("ByFilter")], EITHER, Body()
]
Act = Callable[[OwnedJob], Awaitable[bool]]


def actor(who: Caller) -> str:
    """Whoever asks, for the record."""
    return who.owner or who.name or who.key_id


def within(wanted: JobFilter, who: Caller) -> JobFilter | None:
    """The filter, kept to what the caller may see; None if that is nothing: others' jobs are as absent as none."""
    if who.sees is None:
        return wanted
    return replace(wanted, owner=who.owner) if wanted.owner in (None, who.owner) else None


@router.post(
    "/submit", status_code=201, response_model=BulkSubmitted,
    responses={
        200: {"model": BulkSubmitted, "content": shown_as({"jobs": [JOINED]})}, **answers(401, 403, 404, 409, 422, 429),
    },
)  # fmt: skip
async def submit_jobs(wanted: Jobs, who: Owner, house: Here, key: IdempotencyKey = None) -> Response:
    """Submit up to a thousand jobs in one transaction. 200: all of them were there before."""
    made = await submit_all(house, who, wanted.jobs, key, batch=len(wanted.jobs))
    status = 201 if any(one.created for one in made) else 200
    return answer(BulkSubmitted(tuple(made)), status=status, headers={"Cache-Control": "no-store"})


@router.post("/cancel", response_model=Sum, responses=PROBLEMS)
async def cancel_jobs(choice: Choice, who: Owner, house: Here) -> Response:
    """Cancel many jobs; those that are cancelled already stay so."""

    async def act(job: OwnedJob) -> bool:
        await house.engine.jobs.cancel(job.id, actor=actor(who))
        return job.outcome != Status.CANCELLED

    return answer(await _on_all(house, who, choice, act))


@router.post("/retry", response_model=Sum, responses=PROBLEMS)
async def retry_jobs(choice: Choice, who: Owner, house: Here) -> Response:
    """Open many failed or cancelled jobs again."""

    async def act(job: OwnedJob) -> bool:
        await house.engine.jobs.retry(job.id, actor=actor(who))
        return True

    return answer(await _on_all(house, who, choice, act))


@router.post("/prioritise", response_model=Sum, responses=PROBLEMS)
async def prioritise_jobs(choice: PriorityChoice, who: Owner, house: Here) -> Response:
    """Give many jobs that have not ended another priority."""

    async def act(job: OwnedJob) -> bool:
        await house.engine.jobs.edit(job.id, priority=choice.priority)
        return True

    return answer(await _on_all(house, who, choice, act))


@router.post("/delete", response_model=Sum, responses=PROBLEMS)
async def delete_jobs(choice: Choice, who: Owner, house: Here) -> Response:
    """Delete many jobs; those that run are cancelled and go when they have ended."""

    async def act(job: OwnedJob) -> bool:
        await house.engine.jobs.delete(job.id, actor=actor(who))
        return True

    return answer(await _on_all(house, who, choice, act))


async def _on_all(house: ServerContext, who: Caller, choice: ByIds | ByFilter, act: Act) -> Sum:
    engine = house.engine
    if isinstance(choice, ByIds):
        return await engine.jobs.for_each(choice.ids, who.sees, act)
    wanted = within(choice.filter.as_wanted(), who)
    if wanted is None:
        return Sum(matched=0, changed=0, refused=())
    page = await engine.queries.jobs(wanted, cursor=choice.cursor, limit=choice.limit)
    done = await engine.jobs.for_each([job.id for job in page.items], who.sees, act)
    return replace(done, next=page.next)
