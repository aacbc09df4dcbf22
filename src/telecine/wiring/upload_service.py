"""Uploads in a server: their desk, and the duty that looks after them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from telecine.api import ServerContext
from telecine.api.uploads.upload_service import ROOM, UploadService, desk_of
from telecine.wiring import Parts, apps, open_artifacts


def upload_room(parts: Parts) -> dict[str, Any]:
    """The desk, as the house keeps it."""
    handler = apps.upload_handler_of(parts)
    return {ROOM: UploadService(parts.engine, open_artifacts(parts.settings), parts.settings, handler)}


@asynccontextmanager
async def attended(house: ServerContext) -> AsyncIterator[None]:
    """Somebody looks after uploads while the body runs."""
    desk = desk_of(house)
    duty = asyncio.create_task(desk.attend(), name="uploads")
    try:
        yield
    finally:
        duty.cancel()
        await asyncio.gather(duty, return_exceptions=True)
        await desk.finisher.close()
