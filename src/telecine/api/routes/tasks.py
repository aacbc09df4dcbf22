"""Tasks: one with all that is known about it, those that failed their job, those that nobody takes."""

from __future__ import annotations

from starlette.responses import Response

from telecine.api.http.auth import Owner
from telecine.api.http.context import Here
from telecine.api.http.json_response import answer
from telecine.api.http.params import Cursor, Limit, TaskPath, Wanted
from telecine.api.http.problems import answers
from telecine.api.http.routing import Router
from telecine.api.routes.bulk import actor
from telecine.api.routes.submit_request import JobState
from telecine.engine.queries.view_models import Page, TaskView
from telecine.errors import WrongState
from telecine.facts import SECOND, Status

router = Router(prefix="/api/v1", tags=["tasks"])
PROBLEMS = answers(401, 403, 422, 429)


@router.get("/tasks/{task_id}", response_model=TaskView, responses=answers(401, 403, 404, 429))
async def get_task(task_id: TaskPath, who: Owner, house: Here) -> Response:
    """One task with its attempts and, while it waits, the reason. `claim_state` says it in six words."""
    await house.engine.queries.job_of_task(task_id, who.sees)
    return answer(await house.engine.queries.task(task_id))


@router.get("/failed-tasks", response_model=Page[TaskView], responses=PROBLEMS)
async def list_failed_tasks(
    who: Owner, house: Here, *, flow: Wanted = None, owner: Wanted = None, cursor: Cursor = None, limit: Limit = 100
) -> Response:
    """The dead letters: tasks that failed their job. A page holds all such tasks of up to `limit` jobs."""
    if who.sees is not None and owner not in (None, who.owner):
        return answer(Page(()), Page[TaskView])
    whose = who.sees if owner is None else owner
    page = await house.engine.queries.failed_tasks(owner=whose, flow=flow, cursor=cursor, limit=limit)
    return answer(page, Page[TaskView])


@router.post("/failed-tasks/{task_id}/retry", response_model=JobState, responses=answers(401, 403, 404, 409, 429))
async def retry_failed_task(task_id: TaskPath, who: Owner, house: Here) -> Response:
    """Open the job of a failed task again: this task and whatever else did not end well; what was done stays done."""
    job = await house.engine.queries.failed_job(task_id, who.sees)
    await house.engine.jobs.retry(job, actor=actor(who))
    return answer(JobState(job, Status.PENDING))


@router.delete(
    "/failed-tasks/{task_id}", status_code=204, response_class=Response, responses=answers(401, 403, 404, 409, 429)
)
async def discard_failed_task(task_id: TaskPath, who: Owner, house: Here) -> Response:
    """Give a failed task up: its job, which has failed by it, is deleted."""
    job = await house.engine.queries.failed_job(task_id, who.sees)
    if not await house.engine.jobs.delete(job, actor=actor(who)):
        raise WrongState(f"job {job} was opened again in between: it goes when it has ended")
    return Response(status_code=204)


@router.get("/stale-tasks", response_model=Page[TaskView], responses=PROBLEMS)
async def list_stale_tasks(
    who: Owner, house: Here, *, flow: Wanted = None, owner: Wanted = None, cursor: Cursor = None, limit: Limit = 100
) -> Response:
    """Tasks that could be claimed and were not for longer than `stale_seconds` (an hour, unless set otherwise).

    A page may hold less than it could and still name a next one: a long queue is looked through page by page.
    """
    if who.sees is not None and owner not in (None, who.owner):
        return answer(Page(()), Page[TaskView])
    whose = who.sees if owner is None else owner
    age = round(house.settings.stale_seconds * SECOND)
    page = await house.engine.queries.stale_tasks(age, owner=whose, flow=flow, cursor=cursor, limit=limit)
    return answer(page, Page[TaskView])
