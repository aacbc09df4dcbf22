"""Where workers wait for work: woken by the bell, a few at a time, so that one new task does not call the whole fleet.

claim, nothing ──▶ wait ──▶ bell or a second ──▶ one look for all who serve the same lanes
                                                 └─ something: the first few claim; whoever got some calls the next
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque

from telecine.api.http.context import ServerContext

log = logging.getLogger(__name__)

AT_ONCE = 4
PAUSE = 0.005
LOOK_SECONDS = 0.5

Lanes = tuple[tuple[str, str], ...]


class ClaimQueue:
    def __init__(self, house: ServerContext) -> None:
        self._house = house
        self._waiting: dict[Lanes, deque[asyncio.Future[None]]] = {}
        self._pumping: asyncio.Task[None] | None = None

    async def wait(self, lanes: Lanes, timeout: float, rest: float = 0.0) -> None:
        """Return when there may be work in these lanes (not before `rest`), after `timeout`, when the server stops."""
        await asyncio.sleep(min(rest, timeout))
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        queue = self._waiting.setdefault(lanes, deque())
        queue.append(future)
        if self._pumping is None:
            self._pumping = asyncio.create_task(self._pump(), name="lobby")
        try:
            # What came between the claim and this line woke others.
            if not await self._sees(lanes):
                await asyncio.wait({future}, timeout=max(0.0, timeout - rest))
        finally:
            future.cancel()
            if future in queue:
                queue.remove(future)
            if not queue and self._waiting.get(lanes) is queue:
                del self._waiting[lanes]

    def call(self, lanes: Lanes, most: int = 1) -> None:
        """Let the next ones who serve these lanes look for themselves."""
        queue = self._waiting.get(lanes)
        while queue and most:
            future = queue.popleft()
            if not future.done():
                future.set_result(None)
                most -= 1

    async def _pump(self) -> None:
        house = self._house
        try:
            while self._waiting and not house.closing.is_set():
                await house.bell.wait(min(LOOK_SECONDS, house.settings.poll_seconds))
                for lanes in list(self._waiting):
                    if await self._sees(lanes):
                        self.call(lanes, AT_ONCE)
                await asyncio.sleep(PAUSE)
        finally:
            self._pumping = None
            for lanes in list(self._waiting):
                self.call(lanes, len(self._waiting[lanes]))

    async def _sees(self, lanes: Lanes) -> bool:
        engine = self._house.engine
        with engine.outages.at("look for work"):
            return await engine.glance(dict(lanes))
        return False
