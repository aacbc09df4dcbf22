"""Log a browser in: a link that works once becomes a cookie that scripts cannot read."""

from __future__ import annotations

from pydantic import BaseModel, Field
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from telecine.api.http.auth import COOKIE, Anybody, Owner, address_of
from telecine.api.http.content_policy import policy_of
from telecine.api.http.context import Here
from telecine.api.http.json_response import answer
from telecine.api.http.problems import answers
from telecine.api.http.routing import Router
from telecine.engine.accounts.keys import SESSION_LIFE
from telecine.errors import KeyInvalid
from telecine.facts import SECOND

router = Router(tags=["login"])


class Me(BaseModel):
    """Who the key or the session belongs to."""

    owner: str = Field(examples=["ada"])
    scope: str = Field(examples=["owner"])
    name: str = Field(examples=["laptop"])


# A link that is fetched by a preview or a mail scanner must not be spent by it: a person presses the button.
FORM = """<!doctype html><html lang="en"><meta charset="utf-8"><title>Telecine</title>
<meta name="viewport" content="width=device-width"><link rel="icon" href="/favicon.svg">
<style>body{font:16px system-ui;display:grid;place-items:center;
height:90vh;background:#101113;color:#eee}button{font:inherit;padding:.7em 1.6em;border:0;border-radius:6px;
background:#4dabf7;cursor:pointer}</style>
<form method="post"><button autofocus>Log in to Telecine</button></form>"""

POLICY = policy_of(FORM, "form-action 'self'")


@router.get("/login/{link}", include_in_schema=False)
async def show_link(link: str, _: Anybody) -> Response:
    return HTMLResponse(FORM, headers={"Cache-Control": "no-store", "Content-Security-Policy": POLICY})


@router.post("/login/{link}", include_in_schema=False)
async def use_link(link: str, house: Here, request: Request, _: Anybody) -> Response:
    """Spend the link; the page is next."""
    try:
        session = await house.keys.log_in(link)
    except KeyInvalid:
        house.rates.stranger(address_of(request))
        raise
    answer = RedirectResponse("/", status_code=303)
    answer.set_cookie(
        COOKIE,
        session.text,
        max_age=SESSION_LIFE // SECOND,
        httponly=True,
        samesite="strict",
        secure=request.url.scheme == "https" or (house.settings.public_url or "").startswith("https://"),
    )
    return answer


@router.get("/api/v1/me", response_model=Me, responses=answers(401, 429))
async def who_am_i(who: Owner) -> Response:
    """Whose key or session this is."""
    return answer(Me(owner=who.owner, scope=who.scope, name=who.name))


@router.post("/api/v1/logout", status_code=204, response_class=Response, responses=answers(401, 403, 429))
async def log_out(who: Owner, house: Here) -> Response:
    """End this session; a key of a program stays valid."""
    gone = Response(status_code=204)
    if who.kind == "session":
        await house.keys.revoke(who.key_id)
        gone.delete_cookie(COOKIE)
    return gone
