"""Whether a file is a film that may come in: its head is read in a sandboxed child."""

from __future__ import annotations

import asyncio
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from telecine.apps.transcode.settings import bounds_of
from telecine.errors import ChildFailed, MediaRefused
from telecine.flow import CHILD
from telecine.media.limits import SourceBounds, check_source
from telecine.media.orders import Probe, plain_order
from telecine.media.plain_json import from_plain
from telecine.media.source import Source
from telecine.wiring import Parts
from telecine.worker.media.media_child import ChildOptions, media_child
from telecine.world import World

TRIES = 3
AT_ONCE = 2
PROBE_SECONDS = 60.0


def looker_of(parts: Parts) -> UploadProbe:
    return UploadProbe(bounds_of(parts.settings), parts.settings.media_nice, parts.world)


class UploadProbe:
    """Reads the head of a film in a child that can do no harm, a few at a time."""

    def __init__(self, bounds: SourceBounds, nice: int, world: World) -> None:
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
