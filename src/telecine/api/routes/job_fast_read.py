"""One job for whoever may see it. Nothing is asked more often, so key and job come in one round trip, and a request for
a plain number goes straight to its answer.

Whatever is no plain number goes the way of all other requests: who asks is asked before what he asks for.
"""

from __future__ import annotations

from starlette.requests import HTTPConnection
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from telecine.api.http.auth import Needs, caller_of, visible
from telecine.api.http.context import house_of
from telecine.api.http.json_response import answer
from telecine.api.http.params import MOST_ID
from telecine.api.http.routing import Route
from telecine.engine.accounts.keys import KeyRow
from telecine.engine.accounts.keys import Scope as KeyScope
from telecine.engine.queries.query_operations import JobRow
from telecine.engine.queries.view_models import JobView

FRESH = {"Cache-Control": "no-store"}
MOST_DIGITS = len(str(MOST_ID)) - 1  # every number with so many is one that a job may have


_of_owner = Needs(KeyScope.OWNER)


async def job_asked(connection: HTTPConnection, job_id: int) -> JobView:
    """The job, made of its row after its asker was let in: without a key that is valid now, it is as if it had not been
    read."""
    views, found = house_of(connection).engine.queries, list[JobRow | None]()

    async def row_of(key_id: str) -> KeyRow | None:
        key, job = await views.asked(job_id, key_id)
        found.append(job)
        return key

    caller = _of_owner.admit(await caller_of(connection, row_of))
    none = f"there is no job {job_id}"
    if (row := found[0]) is not None:
        visible(caller, row["owner"], none)
        return await views.waiting_job(row)
    job = await views.job(job_id)
    visible(caller, job.owner, none)
    return job


def job_shown(job: JobView) -> Response:
    return answer(job, headers={"ETag": f'"{job.version}"', **FRESH})


class JobRoute(Route):
    """The route to one job: the way of all others, without what its function does not need."""

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        number: str = scope["path_params"]["job_id"]
        if scope["method"] != "GET" or not _is_plain(number):
            await super().handle(scope, receive, send)
            return
        response = job_shown(await job_asked(HTTPConnection(scope), int(number)))
        await response(scope, receive, send)


def _is_plain(number: str) -> bool:
    return len(number) <= MOST_DIGITS and number.isascii() and number.isdigit() and number[0] != "0"
