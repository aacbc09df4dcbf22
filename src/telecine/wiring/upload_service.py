"""Uploads in a server: their desk, with a checker that looks into films in a sandboxed child; and their duty."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from telecine.api import House
from telecine.api.uploads.upload_service import ROOM, Desk, desk_of
from telecine.errors import ChildFailed, MediaRefused
from telecine.flow import CHILD
from telecine.media.limits import Bounds, check_source
from telecine.media.orders import Probe, plain_order
from telecine.media.plain_json import from_plain
from telecine.media.source import Source
from telecine.settings import Settings
from telecine.wiring import Parts, open_artifacts
from telecine.worker.media.media_child import ChildOptions, media_child
from telecine.world import World

log = logging.getLogger(__name__)

TRIES = 3
AT_ONCE = 2
PROBE_SECONDS = 60.0


def upload_room(parts: Parts) -> dict[str, Any]:
    """The desk, as the house keeps it."""
    return {ROOM: Desk(parts.engine, open_artifacts(parts.settings), parts.settings, looker_of(parts))}


def looker_of(parts: Parts) -> Looker:
    return Looker(bounds_of(parts.settings), parts.settings.media_nice, parts.world)


@asynccontextmanager
async def attended(house: House) -> AsyncIterator[None]:
    """Somebody looks after uploads while the body runs."""
    desk = desk_of(house)
    duty = asyncio.create_task(desk.attend(), name="uploads")
    try:
        yield
    finally:
        duty.cancel()
        await asyncio.gather(duty, return_exceptions=True)
        await desk.finisher.close()


def bounds_of(settings: Settings) -> Bounds:
    return Bounds(
        source_bytes=settings.max_source_bytes,
        seconds=settings.max_source_seconds,
        pixels=settings.max_pixels,
        streams=settings.max_streams,
    )


class Looker:
    """Reads the head of a film in a child that can do no harm, a few at a time."""

    def __init__(self, bounds: Bounds, nice: int, world: World) -> None:
        self._bounds = bounds
        self._nice = nice
        self._world = world
        self._turns = asyncio.Semaphore(AT_ONCE)

    async def __call__(self, handle: int, size: int) -> None:
        """`MediaRefused` if it is no film, or one that may not come in. What kills the child every time is none."""
        for left in reversed(range(TRIES)):
            try:
                async with self._turns:
                    found = await self._probe(handle, size)
                check_source(found, self._bounds)
                return
            except (ChildFailed, TimeoutError) as error:
                if isinstance(error, ChildFailed) and error.permanent:
                    raise MediaRefused(error.message, code=error.code) from error
                if not left:
                    raise MediaRefused(
                        f"nobody can look into this file: {str(error) or 'it takes too long'}"
                    ) from error

    async def _probe(self, handle: int, size: int) -> Source:
        with TemporaryDirectory(prefix="telecine-look-") as folder:
            ways = ChildOptions(
                program=CHILD, folder=Path(folder), nice=self._nice, mono=self._world.mono, say=_unheard
            )
            order = plain_order(Probe(size=size))
            async with (
                asyncio.timeout(PROBE_SECONDS),
                media_child(ways, order, {"source": handle}, None, set()) as child,
            ):
                said = [message async for message in child]
        return from_plain(Source, said[-1]["done"])


def _unheard(*line: Any) -> None:
    """Steps of a job are recorded; this is of none."""
