"""A store whose commits are announced, so that readers of events look again at once."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Protocol

from telecine.dispatch import EVENTS
from telecine.store import Steps, Store, T


class Ringer(Protocol):
    """The half of a bell that the engine needs: say that lanes have work, or that there are events."""

    def ring(self, lanes: Iterable[str]) -> None: ...


class NewsStore:
    """Rings after every commit. A transaction with an empty result has changed nothing and does not ring."""

    def __init__(self, store: Store, news: Ringer) -> None:
        self._store, self._news = store, news
        self.read = store.read

    @property
    def now(self) -> int | None:
        return self._store.now

    @now.setter
    def now(self, value: int | None) -> None:
        self._store.now = value

    async def run(self, make: Callable[[], Steps[T]]) -> T:
        result = await self._store.run(make)
        if result or result is None:
            self._news.ring(EVENTS)
        return result

    async def close(self) -> None:
        await self._store.close()
