"""The page: built files from the package if they are there, else a few words that say where things are.

It answers to every address that nobody else has. Whatever belongs to the API stays a problem, with the status
that it would have without a page.
"""

from __future__ import annotations

from html import escape
from pathlib import Path
from typing import Final

from fastapi import FastAPI
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.staticfiles import StaticFiles
from starlette.types import Receive, Scope, Send

from telecine.api.http.auth import caller_or_nobody
from telecine.api.http.content_policy import policy_of
from telecine.errors import KeyInvalid, StoreError

BUILT: Final = Path(__file__).parents[1] / "static"
# Addresses of programs: what is not there is not there, also for browsers.
OURS = ("api", "media", "health", "metrics", "login", "docs", "openapi.json")

SAFE = {
    # Scripts only from here; styles also inline; films as blobs, whose pieces a script has put together.
    "Content-Security-Policy": (
        "default-src 'self'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; "
        "media-src 'self' blob:; worker-src 'self' blob:; connect-src 'self'; object-src 'none'; base-uri 'none'; "
        "form-action 'self'; frame-ancestors 'none'"
    ),
    "Permissions-Policy": "camera=(), microphone=(), geolocation=()",
    "Cross-Origin-Opener-Policy": "same-origin",
}
NAME = "(page)"  # of all of it, in metrics and log lines
METHODS = ("GET", "HEAD")
FOR_EVER = "public, max-age=31536000, immutable"

STYLE = (
    "body{font:16px/1.5 system-ui;max-width:40em;margin:4em auto;padding:0 1em;background:#101113;color:#eee}"
    "a{color:#4dabf7}code{background:#25262b;padding:.1em .3em}"
)
PLAIN = """<!doctype html><html lang="en"><meta charset="utf-8"><title>Telecine</title>
<meta name="viewport" content="width=device-width"><link rel="icon" href="/favicon.svg"><style>{style}</style>
<h1>Telecine</h1>
<p>This server is up. Its API is described at <a href="/docs">/docs</a> and in
<a href="/openapi.json">/openapi.json</a>; how it is, it tells at <a href="/api/health">/api/health</a>.</p>
{who}
<p>Programs send a key, made with <code>telecine keys create</code>, as <code>Authorization: Bearer …</code>.</p></html>
"""
STRANGER = "<p>Log in with a link: <code>telecine login</code> on the server prints one that works once.</p>"
KNOWN = """<p>You are logged in as {name}. This browser may read now:</p><ul>
<li><a href="/api/v1/videos">/api/v1/videos</a>: the films</li>
<li><a href="/api/v1/jobs">/api/v1/jobs</a>: the work</li>
<li><a href="/api/v1/stats">/api/v1/stats</a>: how much there is to do</li>
{more}<li><a href="/api/v1/me">/api/v1/me</a>: whose session this is</li></ul>"""
FOR_ADMINS = '<li><a href="/api/v1/workers">/api/v1/workers</a>: who works</li>\n'


def install(app: FastAPI) -> None:
    """Answer where no route does. Not a route of its own: that would hide that an address has other methods."""
    nobody = app.router.default

    async def page(scope: Scope, receive: Receive, send: Send) -> None:
        path: str = scope["path"].lstrip("/")
        if scope["type"] != "http" or path.split("/", 1)[0] in OURS:
            await nobody(scope, receive, send)
            return
        request = Request(scope, receive)
        request.state.route = NAME
        if request.method not in METHODS:
            raise HTTPException(405, "pages are only read", headers={"Allow": "GET, HEAD"})
        response = await _built(path, request) if BUILT.is_dir() else await _plain(path, request)
        await response(scope, receive, send)

    app.router.default = page


async def _plain(path: str, request: Request) -> Response:
    if path:
        raise HTTPException(404, f"there is no page at /{path[:200]}")
    text = PLAIN.format(style=STYLE, who=await _greeting(request))
    policy = {"Content-Security-Policy": policy_of(text, "form-action 'none'")}
    return HTMLResponse(text, headers={**SAFE, **policy, "Cache-Control": "no-store", "Vary": "Cookie"})


async def _greeting(request: Request) -> str:
    """A session that has ended is none; and this page is there also while the database is not."""
    try:
        who = await caller_or_nobody(request)
    except (KeyInvalid, StoreError):
        who = None
    if who is None:
        return STRANGER
    name = "an administrator" if who.is_admin else f"<b>{escape(who.owner)}</b>"
    return KNOWN.format(name=name, more=FOR_ADMINS if who.is_admin else "")


async def _built(path: str, request: Request) -> Response:
    """A file if there is one; else the page itself, which knows its own addresses."""
    files = StaticFiles(directory=BUILT)
    if path and not any(part.startswith(".") for part in path.split("/")):
        try:
            found = await files.get_response(path, request.scope)
        except HTTPException as error:
            if error.status_code != 404 or "." in path.rsplit("/", 1)[-1]:
                raise
        else:
            found.headers.update({**SAFE, "Cache-Control": FOR_EVER if path.startswith("assets/") else "no-cache"})
            return found
    index = await files.get_response("index.html", request.scope)
    index.headers.update({**SAFE, "Cache-Control": "no-cache"})
    return index
