"""An answer that many may ask for and that is worked out once in a while."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class SharedResult(Generic[T]):
    """Whoever asks within `seconds` gets the same answer; who asks while it is worked out waits for it. An error is not
    kept."""

    def __init__(self, work: Callable[[], Awaitable[T]], seconds: float, mono: Callable[[], float]) -> None:
        self._work, self._seconds, self._mono = work, seconds, mono
        self._lock = asyncio.Lock()
        self._kept: tuple[float, T] | None = None

    async def get(self) -> T:
        async with self._lock:
            if self._kept is None or self._mono() - self._kept[0] >= self._seconds:
                self._kept = None
                self._kept = (self._mono(), await self._work())
            return self._kept[1]
