"""One range of bytes, as `Range: bytes=first-last` asks for it."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from typing import Annotated

from fastapi import Header
from starlette.responses import Response

from telecine.api.problems import problem

# More than that comes in several answers.
MOST_READ = 16 << 20
_RANGE = re.compile(r"bytes=(\d{1,16})-(\d{1,16})?")

RangeHeader = Annotated[str | None, Header(alias="Range", description="bytes=first-last")]


async def ranged(wanted: str, size: int, read: Callable[[int, int], Awaitable[bytes]]) -> Response:
    """The part of it, fewer bytes than asked for where it ends or where that were too many."""
    found = _RANGE.fullmatch(wanted)
    first = int(found[1]) if found else size
    last = min(int(found[2]) if found and found[2] else size - 1, size - 1, first + MOST_READ - 1)
    if last < first:
        headers = {"Content-Range": f"bytes */{size}"}
        return problem(416, "bad_range", f"there is no such range of {size} bytes", headers=headers)
    data = await read(first, last - first + 1)
    headers = {"Content-Range": f"bytes {first}-{first + len(data) - 1}/{size}"}
    return Response(data, status_code=206, media_type="application/octet-stream", headers=headers)
