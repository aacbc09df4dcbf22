"""A bell for one process, and the part that the other bells share: who waits, and what they have heard."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from weakref import WeakKeyDictionary


class LocalBell:
    """Counts rings; each waiting task remembers how many it has heard, so none steals another's."""

    vague = False

    def __init__(self) -> None:
        self._rings = 0
        self._heard: WeakKeyDictionary[asyncio.Task[object], int] = WeakKeyDictionary()
        self._waiting: set[asyncio.Future[None]] = set()
        self._loop: asyncio.AbstractEventLoop | None = None

    def ring(self, lanes: Iterable[str]) -> None:
        if not any(True for _ in lanes):
            return
        loop = self._loop
        if loop is None:  # nobody has waited yet; whoever comes finds the count changed
            self._rings += 1
            return
        try:
            here = asyncio.get_running_loop() is loop
        except RuntimeError:
            here = False
        if here:
            self.wake()
            return
        try:
            loop.call_soon_threadsafe(self.wake)
        except RuntimeError:  # that loop is closed: there is nobody to wake
            return

    def nudge(self, lanes: Iterable[str]) -> None:
        """Wake who waits here, which is everybody."""
        self.ring(lanes)

    def wake(self) -> None:
        """Ring, in the thread of those who wait."""
        self._rings += 1
        self.stir()

    def stir(self) -> None:
        """End a wait early without a ring: look for yourself."""
        for future in self._waiting:
            if not future.done():
                future.set_result(None)

    async def wait(self, timeout: float) -> None:
        await self.heard(timeout)

    async def heard(self, timeout: float) -> bool:
        """Wait; was there a ring that this task had not heard yet?"""
        self._loop = loop = asyncio.get_running_loop()
        me = asyncio.current_task()
        assert me is not None
        if self._heard.get(me, 0) == self._rings:
            future: asyncio.Future[None] = loop.create_future()
            timer = loop.call_later(timeout, _end, future)
            self._waiting.add(future)
            try:
                await future
            finally:
                timer.cancel()
                self._waiting.discard(future)
        known, self._heard[me] = self._heard.get(me, 0), self._rings
        return known != self._rings

    async def close(self) -> None:
        self.wake()


def _end(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)
