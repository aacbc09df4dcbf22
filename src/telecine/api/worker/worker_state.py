"""What the server keeps in mind about remote workers. All of it may be forgotten: the database knows."""

from __future__ import annotations

import asyncio
import hashlib
from collections import OrderedDict
from collections.abc import Iterable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Generic, TypeVar

from fastapi import Depends
from starlette.requests import HTTPConnection

from telecine.api.http.context import ServerContext, house_of
from telecine.api.worker.background_hashes import BackgroundHashes
from telecine.api.worker.claim_queue import ClaimQueue
from telecine.engine.leases.remote_workers import RemoteWorker, RemoteWorkers
from telecine.private_files import make_private_folder

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from telecine.artifacts import Stored
    from telecine.engine.accounts.keys import Caller
    from telecine.facts import Lease

MAX_REMEMBERED = 20_000
MAX_LEASES = 1_000  # each with the spec of its job
CLEAR_SECONDS = 600.0

K = TypeVar("K")
V = TypeVar("V")


class LatestCache(OrderedDict[K, V], Generic[K, V]):
    """The latest of what was put in."""

    def __init__(self, limit: int = MAX_REMEMBERED) -> None:
        super().__init__()
        self._limit = limit

    def note(self, key: K, value: V) -> None:
        self[key] = value
        self.move_to_end(key)
        if len(self) > self._limit:
            self.popitem(last=False)


class WorkerState:
    def __init__(self, house: ServerContext) -> None:
        self.house = house
        self.remotes = RemoteWorkers(house.engine)
        self.claim_queue = ClaimQueue(house)
        self.hashes = BackgroundHashes()
        self.received: LatestCache[str, Stored] = LatestCache()  # by key, as it was when its bytes were stored here
        # Of uploads that are not recorded yet.
        self._leases: LatestCache[tuple[str, int, int], Lease] = LatestCache(MAX_LEASES)
        self._workers: LatestCache[int, tuple[str, RemoteWorker]] = LatestCache()
        self._granted: LatestCache[tuple[int, int], str] = LatestCache()
        self._storing: dict[str, tuple[asyncio.Lock, int]] = {}
        self._clear_at = 0.0

    async def worker(self, who: Caller, worker: int) -> RemoteWorker:
        """The worker that speaks; `WorkerGone` if this number did not come with this key."""
        key_id, known = self._workers.get(worker, ("", None))
        if known is None or key_id != who.key_id:
            known = await self.remotes.worker(who.key_id, worker)
            self._workers.note(worker, (who.key_id, known))
        return known

    async def lease(self, who: Caller, task: int, token: int) -> Lease:
        """The lease, while a worker of this key holds it; `LeaseLost` if not."""
        return await self.remotes.lease(who.key_id, task, token)

    async def lease_of_upload(self, who: Caller, task: int, token: int) -> Lease:
        """The same, remembered until the bytes are recorded."""
        lease = await self.lease(who, task, token)
        self._leases.note((who.key_id, task, token), lease)
        return lease

    async def lease_of_record(self, who: Caller, task: int, token: int) -> Lease:
        """As it was read when the bytes came: the engine checks the fence when it records them."""
        return self._leases.pop((who.key_id, task, token), None) or await self.lease(who, task, token)

    def grant(self, who: Caller, leases: Iterable[Lease]) -> None:
        for lease in leases:
            self._granted.note((lease.task_id, lease.token), who.key_id)

    async def owned(self, who: Caller, named: Iterable[tuple[int, int]]) -> set[tuple[int, int]]:
        """Of these (task, token), those that workers of this key hold or have held: for ever, so it is remembered."""
        wanted = set(named)
        mine = {pair for pair in wanted if self._granted.get(pair) == who.key_id}
        if unknown := wanted - mine:
            mine |= await self.remotes.owned(who.key_id, sorted(unknown))
        return mine

    @asynccontextmanager
    async def storing(self, lease: Lease, key: str) -> AsyncIterator[Path]:
        """One at a time for each key; where the bytes that have come so far lie."""
        lock, users = self._storing.get(key, (asyncio.Lock(), 0))
        self._storing[key] = (lock, users + 1)
        try:
            async with lock:
                await self._clear()
                yield self.part(lease, key)
        finally:
            lock, users = self._storing[key]
            if users == 1:
                del self._storing[key]
            else:
                self._storing[key] = (lock, users - 1)

    def part(self, lease: Lease, key: str) -> Path:
        mark = hashlib.sha256(key.encode()).hexdigest()[:32]
        return self._incoming / f"{lease.task_id}-{lease.token}-{mark}.part"

    @property
    def _incoming(self) -> Path:
        return self.house.settings.scratch / "incoming"

    async def _clear(self) -> None:
        """Once in a while: what came for leases that have ended is of no use to anybody."""
        now = self.house.world.mono()
        if now < self._clear_at:
            return
        self._clear_at = now + CLEAR_SECONDS
        make_private_folder(self._incoming)
        parts = {path: lease_of(path) for path in self._incoming.glob("*-*-*.part")}
        running = await self.remotes.running(list(parts.values()))
        for path, lease in parts.items():
            if lease not in running:
                path.unlink(missing_ok=True)


def lease_of(part: Path) -> tuple[int, int]:
    task, token, _ = part.name.split("-", 2)
    return int(task), int(token)


async def worker_state_of(connection: HTTPConnection) -> WorkerState:
    # Async, so that it runs in the loop: in threads, two who come first would make two rooms, each with its own locks.
    house = house_of(connection)
    state = house.rooms.get("workers")
    if state is None:
        state = house.rooms["workers"] = WorkerState(house)
    assert isinstance(state, WorkerState)
    return state


Here = Annotated[WorkerState, Depends(worker_state_of)]
