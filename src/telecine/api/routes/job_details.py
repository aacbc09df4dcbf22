"""What a job consists of: its tasks, their attempts, logs and files, page by page."""

from __future__ import annotations

from typing import Annotated, Literal

from fastapi import Query
from starlette.responses import Response

from telecine.api.http.auth import Owner
from telecine.api.http.context import Here
from telecine.api.http.json_response import answer
from telecine.api.http.params import MAX_ID, Cursor, JobPath, Limit, Wanted
from telecine.api.http.problems import answers
from telecine.api.http.routing import Router
from telecine.engine.queries.view_models import AttemptView, LogLine, OutputFile, Page, TaskView

router = Router(prefix="/api/v1/jobs/{job_id}", tags=["jobs"])
PROBLEMS = answers(401, 403, 404, 422, 429)

StateName = Literal["new", "ready", "running", "done", "error", "cancelled", "skipped"]
After = Annotated[int, Query(ge=0, le=MAX_ID, description="Only lines after the one with this id")]
LogKind = Annotated[Literal["log", "step"] | None, Query(description="Lines, or steps: commands with their output")]
LogLevel = Annotated[Literal["debug", "info", "warning", "error"] | None, Query(description="This and what is graver")]


@router.get("/tasks", response_model=Page[TaskView], responses=PROBLEMS)
async def list_tasks_of_job(
    job_id: JobPath,
    who: Owner,
    house: Here,
    *,
    stage: Wanted = None,
    state: Annotated[StateName | None, Query()] = None,
    cursor: Cursor = None,
    limit: Limit = 100,
) -> Response:
    """The tasks of a job, in the order of their stages."""
    await house.engine.queries.owned_job(job_id, who.sees)
    page = await house.engine.queries.tasks(job_id, stage=stage, state=state, cursor=cursor, limit=limit)
    return answer(page, Page[TaskView])


@router.get("/attempts", response_model=Page[AttemptView], responses=PROBLEMS)
async def list_attempts_of_job(
    job_id: JobPath, who: Owner, house: Here, cursor: Cursor = None, limit: Limit = 100
) -> Response:
    """How each attempt at each task of a job ended, and at whose hands."""
    await house.engine.queries.owned_job(job_id, who.sees)
    return answer(await house.engine.queries.attempts(job_id, cursor=cursor, limit=limit), Page[AttemptView])


@router.get("/logs", response_model=Page[LogLine], responses=PROBLEMS)
async def list_logs_of_job(
    job_id: JobPath,
    who: Owner,
    house: Here,
    *,
    after: After = 0,
    kind: LogKind = None,
    level: LogLevel = None,
    limit: Limit = 100,
) -> Response:
    """Log lines and steps of a job, the oldest first. Give `next` back as `after`; None: that was all so far."""
    await house.engine.queries.owned_job(job_id, who.sees)
    lines = await house.engine.queries.logs(job_id, after=after, kind=kind, level=level, limit=limit)
    return answer(Page(lines, str(lines[-1].id) if len(lines) == limit else None), Page[LogLine])


@router.get("/outputs", response_model=Page[OutputFile], responses=PROBLEMS)
async def list_outputs_of_job(
    job_id: JobPath, who: Owner, house: Here, cursor: Cursor = None, limit: Limit = 100
) -> Response:
    """All files that a job recorded, in the order in which it did."""
    await house.engine.queries.owned_job(job_id, who.sees)
    return answer(await house.engine.queries.outputs(job_id, cursor=cursor, limit=limit), Page[OutputFile])
