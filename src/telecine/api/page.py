"""The page: built files from the package if they are there, else a few words that say where things are.

It answers to every address that nobody else has. Whatever belongs to the API stays a problem, with the status
that it would have without a page.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from fastapi import FastAPI
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.staticfiles import StaticFiles
from starlette.types import Receive, Scope, Send

BUILT: Final = Path(__file__).parent / "static"
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
FOR_EVER = "public, max-age=31536000, immutable"

PLAIN = """<!doctype html><html lang="en"><meta charset="utf-8"><title>Telecine</title>
<meta name="viewport" content="width=device-width"><style>body{font:16px/1.5 system-ui;max-width:40em;margin:4em auto;
padding:0 1em;background:#101113;color:#eee}a{color:#4dabf7}code{background:#25262b;padding:.1em .3em}</style>
<h1>Telecine</h1>
<p>This server is up. Its API is described at <a href="/docs">/docs</a> and in
<a href="/openapi.json">/openapi.json</a>; how it is, it tells at <a href="/api/health">/api/health</a>.</p>
<p>Log in with a link: <code>telecine login</code> on the server prints one that works once. Programs send a key,
made with <code>telecine keys create</code>, as <code>Authorization: Bearer …</code>.</p></html>
"""


def install(app: FastAPI) -> None:
    """Answer where no route does. Not a route of its own: that would hide that an address has other methods."""
    nobody = app.router.default

    async def page(scope: Scope, receive: Receive, send: Send) -> None:
        path: str = scope["path"].lstrip("/")
        if scope["type"] != "http" or path.split("/", 1)[0] in OURS:
            await nobody(scope, receive, send)
            return
        request = Request(scope, receive)
        request.state.route = "(page)"
        if request.method not in ("GET", "HEAD"):
            raise HTTPException(405, "pages are only read", headers={"Allow": "GET, HEAD"})
        response = await _built(path, request) if BUILT.is_dir() else _plain(path)
        await response(scope, receive, send)

    app.router.default = page


def _plain(path: str) -> Response:
    if path:
        raise HTTPException(404, f"there is no page at /{path[:200]}")
    return HTMLResponse(PLAIN, headers={**SAFE, "Cache-Control": "no-cache"})


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
