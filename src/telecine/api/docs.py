"""The API, described for people: one page of our own that reads /openapi.json and loads nothing from elsewhere."""

from __future__ import annotations

import hashlib
import re
from base64 import b64encode
from pathlib import Path
from typing import Final

from starlette.responses import HTMLResponse, Response

from telecine.api.auth import Anybody
from telecine.api.routing import Router

router = Router()

PAGE: Final = (Path(__file__).parent / "docs.html").read_text(encoding="utf-8")


def _sum_of(tag: str) -> str:
    """How a policy names what stands between these tags, so that nothing else runs."""
    inside = re.findall(f"<{tag}>(.*?)</{tag}>", PAGE, re.DOTALL)[0]
    return f"'sha256-{b64encode(hashlib.sha256(inside.encode()).digest()).decode()}'"


POLICY: Final = (
    f"default-src 'none'; script-src {_sum_of('script')}; style-src {_sum_of('style')}; connect-src 'self'; "
    "img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)


@router.get("/docs", include_in_schema=False)
async def docs(_: Anybody) -> Response:
    return HTMLResponse(PAGE, headers={"Content-Security-Policy": POLICY, "Cache-Control": "no-cache"})
