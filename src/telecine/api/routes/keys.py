"""Keys: administrators make and revoke all of them, owners their own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field
from starlette.responses import Response

from telecine.api.http.auth import Owner
from telecine.api.http.context import Here
from telecine.api.http.json_response import answer
from telecine.api.http.params import Cursor, KeyPath, Limit, Name
from telecine.api.http.problems import answers
from telecine.api.http.routing import Router
from telecine.engine.accounts.keys import KeyView, Manner, Scope
from telecine.engine.leases.remote_workers import RemoteWorkers
from telecine.engine.queries.view_models import Page
from telecine.errors import BadSpec, NotAllowed
from telecine.facts import DAY, Instant
from telecine.wire.scalars import Real

router = Router(prefix="/api/v1/keys", tags=["keys"])
MAX_DAYS = 36_500


class NewKey(BaseModel):
    """A key to be made. Workers get theirs by `POST /api/worker/register`."""

    model_config = ConfigDict(
        extra="forbid", json_schema_extra={"examples": [{"scope": "owner", "owner": "ada", "name": "laptop"}]}
    )

    scope: Literal["owner", "admin"] = "owner"
    owner: Name | None = Field(None, description="Whose things it opens; an owner's own, if left out")
    name: Name | None = Field(None, description="What it is for")
    days: Real | None = Field(None, gt=0, le=MAX_DAYS, description="How long it is valid; none: for ever")


@dataclass(frozen=True, slots=True)
class MadeKey:
    """A new key: `key` is shown this once, and nowhere kept."""

    id: str
    key: str
    expires_at: Instant | None


@router.get("", response_model=Page[KeyView], responses=answers(401, 403, 422, 429))
async def list_keys(who: Owner, house: Here, cursor: Cursor = None, limit: Limit = 100) -> Response:
    """The keys, the newest first, without secrets: all for an administrator, his own for an owner."""
    return answer(await house.keys.page(owner=who.sees, cursor=cursor, limit=limit), Page[KeyView])


@router.post("", status_code=201, response_model=MadeKey, responses=answers(401, 403, 409, 422, 429))
async def create_key(wanted: NewKey, who: Owner, house: Here) -> Response:
    """Make a key. It is shown in this answer and never again."""
    if not who.is_admin and (wanted.scope != "owner" or wanted.owner not in (None, who.owner)):
        raise NotAllowed("an owner makes keys for himself only: leave `scope` and `owner` out")
    life = None if wanted.days is None else max(1, round(wanted.days * DAY))
    if who.is_admin and (wanted.scope == "owner") != (wanted.owner is not None):
        raise BadSpec("an owner's key needs `owner`: whose things it opens; an administrator's opens everything")
    owner = (wanted.owner or "") if who.is_admin else who.owner
    how: Manner = {"owner": owner, "name": wanted.name or "", "life": life}
    if wanted.scope == "owner":
        how["most"] = house.settings.max_keys_per_owner
    made = await house.keys.issue(Scope(wanted.scope), **how)
    return answer(MadeKey(made.id, made.text, made.expires_at), status=201, headers={"Cache-Control": "no-store"})


@router.delete("/{key_id}", status_code=204, response_class=Response, responses=answers(401, 403, 404, 429))
async def revoke_key(key_id: KeyPath, who: Owner, house: Here) -> Response:
    """Make a key worthless, at once and for good. Workers that came with it lose their work, unharmed."""
    await house.keys.revoke(key_id, owner=who.sees)
    await RemoteWorkers(house.engine).shut_out(key_id)
    return Response(status_code=204)
