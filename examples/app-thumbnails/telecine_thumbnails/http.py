"""The route, and who may submit: a job reads a path with the rights of the worker, so only administrators name one."""

from starlette.responses import Response

from telecine.api.http.auth import Owner, visible
from telecine.api.http.context import Here
from telecine.api.http.problems import answers
from telecine.api.http.routing import Router
from telecine.engine.accounts.keys import Caller
from telecine.errors import NotAllowed, NotFound
from telecine.facts import Json

router = Router(prefix="/api/v1/thumbnails", tags=["thumbnails"])


@router.get("/{job_id}", response_class=Response, responses=answers(401, 403, 404))
async def get_thumbnail(job_id: int, who: Owner, house: Here) -> Response:
    """Return the thumbnail that a job has made."""
    job = await house.engine.queries.job(job_id)
    visible(who, job.owner, f"there is no job {job_id}")
    for one in await house.engine.queries.kept(job_id, "shrink"):
        if one.kept.key is not None:
            return Response(await house.artifacts.read(one.kept.key), media_type="image/jpeg")
    raise NotFound(f"job {job_id} has made no thumbnail")


async def admins_only(spec: Json, caller: Caller) -> None:
    if not caller.is_admin:
        raise NotAllowed("only an administrator may name a file of a worker's disk")


routers = [router]
