"""The API, described for people: one page of our own that reads /openapi.json and loads nothing from elsewhere."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from starlette.responses import HTMLResponse, Response

from telecine.api.http.auth import Anybody
from telecine.api.http.content_policy import policy_of
from telecine.api.http.routing import Router

router = Router()

PAGE: Final = (Path(__file__).parent / "docs.html").read_text(encoding="utf-8")


POLICY: Final = policy_of(PAGE, "connect-src 'self'", "form-action 'none'")
ICON: Final = (
    '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32"><rect width="32" height="32" rx="6" fill="#101113"/>'
    '<circle cx="16" cy="16" r="10" fill="none" stroke="#4dabf7" stroke-width="3"/><path d="M13 11l8 5-8 5z" '
    'fill="#4dabf7"/></svg>'
)


@router.get("/favicon.ico", include_in_schema=False)
@router.get("/favicon.svg", include_in_schema=False)
async def favicon(_: Anybody) -> Response:
    return Response(ICON, media_type="image/svg+xml", headers={"Cache-Control": "public, max-age=86400"})


@router.get("/docs", include_in_schema=False)
async def docs(_: Anybody) -> Response:
    return HTMLResponse(PAGE, headers={"Content-Security-Policy": POLICY, "Cache-Control": "no-cache"})
