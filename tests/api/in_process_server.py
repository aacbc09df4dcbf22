"""A server in the process of the test: real database, real application, no socket between."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager, AsyncExitStack
from typing import Any

import httpx
import pytest
from fastapi import FastAPI

from telecine.api import create_app
from telecine.engine.accounts.keys import Scope
from telecine.facts import Lease
from telecine.settings import Settings
from telecine.wiring import Parts, open_engine
from telecine.wiring.server import open_house
from tests.support.builders import NOW, a_flow
from tests.support.engine_fixture import Bed

# For tests of what is said before any database is asked: one is enough.
ANY_DATABASE = pytest.mark.parametrize("front", ["sqlite"], indirect=True)


class Front:
    """Speak to it with `front.ada`, `front.bob` (owners), `front.admin`, `front.worker` or `front.nobody`."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self._stack = AsyncExitStack()
        self.parts: Parts
        self.bed: Bed
        self.app: FastAPI
        self.running: dict[str, Lease] = {}  # by subject, for tests that play a worker

    async def open(self, *, is_empty: bool = False) -> None:
        """On empty tables: where they are not known to be, they are emptied."""
        self.parts = await self._stack.enter_async_context(open_engine(self.settings))
        self.bed = Bed(self.settings.database_url, self.parts.store)
        self.bed.engine = self.parts.engine
        if is_empty:
            await self.bed.sql(f"update pulse set at = {NOW}")
        else:
            await self.bed.clean()
        self.parts.store.now = None  # the real clock, unless a test sets one
        self.house = open_house(self.parts)
        self.app = create_app(self.house)
        self.nobody = await self._client(None)
        self.admin = await self._client(await self.key(Scope.ADMIN))
        self.ada = await self._client(await self.key(Scope.OWNER, owner="ada"))
        self.bob = await self._client(await self.key(Scope.OWNER, owner="bob"))
        self.worker = await self._client(await self.key(Scope.WORKER, name="w1"))

    async def close(self) -> None:
        self.house.closing.set()
        await self._stack.aclose()

    async def key(self, scope: Scope, **how: Any) -> str:
        return (await self.house.keys.issue(scope, **how)).text

    async def client(self, scope: Scope, **how: Any) -> httpx.AsyncClient:
        return await self._client(await self.key(scope, **how))

    async def _client(self, key: str | None) -> httpx.AsyncClient:
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        transport = httpx.ASGITransport(self.app, raise_app_exceptions=False)
        client = httpx.AsyncClient(transport=transport, base_url="http://telecine.test", headers=headers)
        return await self._stack.enter_async_context(client)

    async def stays(self, part: AbstractAsyncContextManager[Any]) -> Any:
        """Open something that is closed with the server."""
        return await self._stack.enter_async_context(part)

    async def flow(self, **how: Any) -> None:
        """Register a small flow, `echo` unless named otherwise."""
        await self.parts.engine.jobs.register(a_flow(**how))
