"""One range of bytes, as `Range: bytes=first-last` asks for it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Annotated

from fastapi import Header
from starlette.responses import Response

from telecine.api.http.problems import problem
from telecine.api.http.ranges import UnsatisfiableRange, range_in

# More than that comes in several answers.
MAX_READ = 16 << 20

RangeHeader = Annotated[str | None, Header(alias="Range", description="bytes=first-last")]


async def ranged(wanted: str | None, size: int, read: Callable[[int, int], Awaitable[bytes]]) -> Response | None:
    """The part of it, fewer bytes than asked for where it ends or where that were too many; None: the whole."""
    try:
        found = range_in(wanted, size)
    except UnsatisfiableRange:
        headers = {"Content-Range": f"bytes */{size}"}
        return problem(416, "bad_range", f"the range begins after the last of {size} bytes", headers=headers)
    if found is None:
        return None
    first, last = found
    data = await read(first, min(last - first + 1, MAX_READ))
    headers = {"Content-Range": f"bytes {first}-{first + len(data) - 1}/{size}"}
    return Response(data, status_code=206, media_type="application/octet-stream", headers=headers)
