"""Jobs: submit, look, change, end."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import Body, Query
from pydantic import BaseModel, ConfigDict, Field, model_validator
from starlette.requests import Request
from starlette.responses import Response

from telecine.api.http.auth import Owner
from telecine.api.http.context import Here, house_of
from telecine.api.http.json_response import answer
from telecine.api.http.params import (
    Cursor,
    Id,
    IdempotencyKey,
    IfMatch,
    JobPath,
    Limit,
    Moment,
    Priority,
    Since,
    StatusName,
    Text,
    Until,
    Wanted,
    versions_in,
)
from telecine.api.http.problems import answers
from telecine.api.http.routing import Router
from telecine.api.openapi.examples import JOINED, shown_as
from telecine.api.routes import bulk, job_details
from telecine.api.routes.bulk import actor, within
from telecine.api.routes.job_read import FRESH, OwnerOfJob, job_shown, read_job
from telecine.api.routes.submit_request import JobRequest, JobState, JobSubmitted, submit_all
from telecine.engine.jobs import delete_job as deleting
from telecine.engine.queries.job_lists import JobFilter
from telecine.engine.queries.view_models import JobLine, JobView, Page
from telecine.errors import BadSpec
from telecine.facts import Status

router = Router(prefix="/api/v1/jobs", tags=["jobs"])

LINKS = {
    name: {"operationId": operation, "parameters": {"job_id": "$response.body#/id"}}
    for name, operation in {
        "job": "get_job",
        "cancel": "cancel_job",
        "edit": "edit_job",
        "delete": "delete_job",
    }.items()
}


def _without_null(schema: dict[str, Any]) -> None:
    for field in schema["properties"].values():
        field["anyOf"] = [kind for kind in field["anyOf"] if kind.get("type") != "null"]
        del field["default"]
    schema.update(minProperties=1, examples=[{"priority": 8}])


class JobEdit(BaseModel):
    """What of a job that has not ended may be changed; what is left out stays as it is."""

    model_config = ConfigDict(extra="forbid", json_schema_extra=_without_null)

    priority: Priority | None = None
    run_at: Moment | None = None

    @model_validator(mode="before")
    @classmethod
    def _something(cls, given: Any) -> Any:
        if isinstance(given, dict) and (not given or None in given.values()):
            raise ValueError("say what to change, priority or run_at or both, and leave out what stays")
        return given


class Reason(BaseModel):
    """Why, for whoever looks at the job later."""

    model_config = ConfigDict(extra="forbid", json_schema_extra={"examples": [{"reason": "wrong source"}]})

    reason: Text = "cancelled"


class JobRetry(BaseModel):
    """After which generation of the job another one is to follow."""

    model_config = ConfigDict(extra="forbid", json_schema_extra={"examples": [{"generation": 1}]})

    generation: Id | None = Field(
        None,
        description="The one that failed: if the next was opened already, nothing is done; 412 beyond that",
    )


@router.post(
    "",
    status_code=201,
    response_model=JobSubmitted,
    responses={
        201: {"links": LINKS},
        200: {"model": JobSubmitted, "links": LINKS, "content": shown_as(JOINED)},
        **answers(401, 403, 404, 409, 422, 429),
    },
)
async def submit_job(wanted: JobRequest, who: Owner, request: Request, key: IdempotencyKey = None) -> Response:
    """Submit a job. 201: made; 200: it was there before, by its key or as an unfinished twin."""
    # A dependency would cost more than the house that it brings.
    [made] = await submit_all(house_of(request), who, [wanted], key)
    headers = {"Location": f"/api/v1/jobs/{made.id}", **(FRESH if made.webhook else {})}
    return answer(made, status=201 if made.created else 200, headers=headers)


@router.get("", response_model=Page[JobLine], responses=answers(401, 403, 422, 429))
async def list_jobs(
    who: Owner,
    house: Here,
    *,
    status: Annotated[StatusName | None, Query(description="One of the nine, or `open`: not ended yet")] = None,
    flow: Wanted = None,
    owner: Wanted = None,
    subject_kind: Wanted = None,
    subject_id: Wanted = None,
    since: Since = None,
    until: Until = None,
    cursor: Cursor = None,
    limit: Limit = 100,
) -> Response:
    """A page of jobs, the newest first. Only with `status` of an end and no other filter but `flow`: the latest end
    first. An owner sees his own."""
    if (subject_kind is None) != (subject_id is None):
        raise BadSpec("a subject has a kind and an id: give both, subject_kind and subject_id, or none")
    subject = None if subject_kind is None or subject_id is None else (subject_kind, subject_id)
    wanted = JobFilter(status=status, flow=flow, owner=owner, subject=subject, since=since, until=until)
    seen = within(wanted, who)
    page: Page[JobLine] = (
        Page(()) if seen is None else await house.engine.queries.jobs(seen, cursor=cursor, limit=limit)
    )
    return answer(page, Page[JobLine])


@router.get("/{job_id}", response_model=JobView, responses=answers(401, 403, 404, 429))
async def get_job(job_id: JobPath, who: OwnerOfJob, request: Request) -> Response:
    """One job in full, also one that was put away. Its `ETag` is the version that `If-Match` of an edit takes."""
    return job_shown(await read_job(request, who, job_id))


@router.patch("/{job_id}", response_model=JobView, responses=answers(401, 403, 404, 409, 412, 422, 429))
async def edit_job(job_id: JobPath, edit: JobEdit, who: Owner, house: Here, if_match: IfMatch = None) -> Response:
    """Change priority or run_at of a job that has not ended; with `If-Match`, only if nobody else did meanwhile."""
    engine = house.engine
    found = await engine.queries.owned_job(job_id, who.sees)
    found.must_be_here()
    known = versions_in(if_match)
    version = None if known is None else min(known)
    if known is not None and len(known) > 1 and (current := (await engine.queries.job(job_id)).version) in known:
        version = current
    await engine.jobs.edit(found.id, version=version, priority=edit.priority, run_at=edit.run_at)
    job = await engine.queries.job(job_id)
    return job_shown(job)


@router.post("/{job_id}/cancel", response_model=JobState, responses=answers(401, 403, 404, 409, 422, 429))
async def cancel_job(
    job_id: JobPath, who: Owner, house: Here, why: Annotated[Reason | None, Body()] = None
) -> Response:
    """End a job: what has not begun at once, what runs with its worker's next beat. To cancel twice is no fault."""
    found = await house.engine.queries.owned_job(job_id, who.sees)
    found.must_be_here()
    status = await house.engine.jobs.cancel(found.id, reason=(why or Reason()).reason, actor=actor(who))
    return answer(JobState(job_id, status))


@router.post("/{job_id}/retry", response_model=JobState, responses=answers(401, 403, 404, 409, 412, 422, 429))
async def retry_job(
    job_id: JobPath, who: Owner, house: Here, after: Annotated[JobRetry | None, Body()] = None
) -> Response:
    """Open a failed or cancelled job again; what was done stays done. With `generation`, a repeat changes nothing."""
    found = await house.engine.queries.owned_job(job_id, who.sees)
    found.must_be_here()
    generation = None if after is None else after.generation
    await house.engine.jobs.retry(found.id, generation=generation, actor=actor(who))
    # A repeat may come when the job has gone far.
    status = Status.PENDING if generation is None else (await house.engine.queries.job(job_id)).status
    return answer(JobState(job_id, status))


@router.delete(
    "/{job_id}",
    status_code=204,
    response_class=Response,
    responses={
        202: {"model": JobState, "description": "Cancelled; gone when it has ended"},
        **answers(401, 403, 404, 429),
    },
)
async def delete_job(job_id: JobPath, who: Owner, house: Here) -> Response:
    """Delete a job. 204: gone. 202: it was running, is cancelled, and goes as soon as its last task has ended."""
    found = await house.engine.queries.owned_job(job_id, who.sees)
    if await deleting.delete(house.engine, found.id, actor=actor(who)):
        return Response(status_code=204)
    return answer(JobState(job_id, "cancelling"), status=202)


routers = (router, job_details.router, bulk.router)
