"""Many readers of live events, who are cut off again and again and come back with the id of their last one."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

from telecine.engine import Engine, Registration
from telecine.engine.accounts.keys import Keys, Scope
from telecine.facts import Done, LeaseOutcome, WorkerId
from telecine.world import World
from tests.api.sse_client import Ear
from tests.fault.worker_processes import rows
from tests.support.builders import a_flow

OWNERS = ("ada", "bob", "cleo")
BROKEN = (OSError, asyncio.IncompleteReadError, TimeoutError)
# What a crowd needs of a server: it is one key's on purpose.
ROOMY: dict[str, Any] = {"max_streams_per_key": 2_000, "rate_limit": 1_000_000}


class Faithful:
    """One reader. `lives` is how long a connection lasts, in seconds, from the least to the most."""

    def __init__(
        self, ports: Callable[[], Sequence[int]], key: str, dice: random.Random, lives: tuple[float, float]
    ) -> None:
        self._ports, self._key, self._dice, self._lives = ports, key, dice, lives
        self.last_id = "0"
        self.seqs: list[int] = []
        self.resets = 0
        self.connections = 0
        self._is_in = False

    async def follow(self, expected: asyncio.Future[int]) -> None:
        """Until as many events came as there are for it, which is known only when all have happened."""
        while not (expected.done() and len(self.seqs) >= expected.result()):
            life = self._dice.uniform(*self._lives)
            # Some are cut off before they are in; if all were, a busy server would never hear of anybody.
            is_hasty = self._dice.random() < 0.25
            self._is_in = False
            try:
                async with asyncio.timeout(life if is_hasty else None) as limit:
                    await self._hear(expected, limit, life)
            except BROKEN:
                # A reader that hammers at a closed door would keep the server from opening it.
                await asyncio.sleep(self._dice.random() * (0.05 if self._is_in else 1.0))

    async def _hear(self, expected: asyncio.Future[int], limit: asyncio.Timeout, life: float) -> None:
        ear = await Ear.open(self._dice.choice(list(self._ports())), key=self._key, last_id=self.last_id)
        try:
            limit.reschedule(asyncio.get_running_loop().time() + life)
            self._is_in = ear.status == 200
            self.connections += self._is_in
            async for heard in ear.blocks():
                self.last_id = heard.id or self.last_id
                if heard.kind == "reset":
                    self.resets += 1
                elif heard.id is not None and heard.kind is not None:
                    self.seqs.append(int(heard.id))
                if expected.done() and len(self.seqs) >= expected.result():
                    return
        finally:
            ear.cut()

    async def rest(self) -> list[str | None]:
        """What comes after the last one: nothing, if all is well."""
        ear = await Ear.open(self._ports()[0], "follow=false", key=self._key, last_id=self.last_id)
        try:
            return [heard.kind for heard in await ear.rest()]
        finally:
            ear.cut()


class Crowd:
    def __init__(self, engine: Engine, ports: Callable[[], Sequence[int]]) -> None:
        self._engine, self._ports = engine, ports
        self._worker = WorkerId(0)
        self._lanes: dict[str, str] = {}
        self._claims = 0
        self.readers: dict[str | None, list[Faithful]] = {}

    async def gather(self, count: int, *, lives: tuple[float, float] = (0.05, 2.0)) -> None:
        """Readers of three owners and of an administrator, in turn."""
        flow = a_flow()
        await self._engine.jobs.register(flow)
        self._lanes = {flow.graph.lane(0): flow.name}
        registration = Registration(name="ann", hostname="here", lanes=tuple(self._lanes), slots=100)
        self._worker = await self._engine.enlist(registration)
        keys = Keys(self._engine._store, World())
        for owner in (*OWNERS, None):
            scope = Scope.ADMIN if owner is None else Scope.OWNER
            key = (await keys.issue(scope, owner=owner or "")).text
            mine = range(count // 4)
            self.readers[owner] = [Faithful(self._ports, key, random.Random(f"{owner} {n}"), lives) for n in mine]

    async def happen(self, jobs: int, *, pause: float = 0.0, meanwhile: Callable[[int], None] | None = None) -> None:
        """So many jobs, each with its events, a few at a time."""
        for n in range(jobs):
            await self._engine.jobs.submit("film", owner=OWNERS[n % 3], subject=("video", str(n)))
            if n % 5 == 4:
                await self._work()
                await asyncio.sleep(pause)
            if meanwhile is not None:
                meanwhile(n)
        await self._work()

    async def _work(self) -> None:
        self._claims += 1
        leases = await self._engine.claim(self._worker, f"claim {self._claims}", self._lanes, 100)
        await self._engine.settle([LeaseOutcome(lease.task_id, lease.token, Done()) for lease in leases])

    async def expected(self) -> dict[str | None, list[int]]:
        """The numbers that each must have heard, by the table itself."""
        await self._engine.events.newest()  # numbers what has none yet
        found = await rows(
            self._engine, "select e.seq, j.owner from event e left join job j on j.id = e.job_id order by e.seq"
        )
        heard: dict[str | None, list[int]] = {None: [row["seq"] for row in found]}
        for owner in OWNERS:
            heard[owner] = [row["seq"] for row in found if row["owner"] == owner]
        return heard

    async def follow(self, happening: Callable[[], Any], within: float) -> dict[str | None, list[int]]:
        """Let it happen while all listen, and wait until each has heard as much as there was; what there was."""
        loop = asyncio.get_running_loop()
        counts: dict[str | None, asyncio.Future[int]] = {owner: loop.create_future() for owner in self.readers}
        async with asyncio.timeout(within), asyncio.TaskGroup() as group:
            for owner, some in self.readers.items():
                for reader in some:
                    group.create_task(reader.follow(counts[owner]))
            await happening()
            expected = await self.expected()
            for owner, count in counts.items():
                count.set_result(len(expected[owner]))
        return expected

    def everyone(self) -> list[Faithful]:
        return [reader for some in self.readers.values() for reader in some]

    def faults(self, expected: dict[str | None, list[int]]) -> Counter[str]:
        """What readers missed, heard twice or out of order."""
        found: Counter[str] = Counter()
        for owner, some in self.readers.items():
            for reader in some:
                found["missed"] += len(set(expected[owner]) - set(reader.seqs))
                found["doubled"] += len(reader.seqs) - len(set(reader.seqs))
                found["foreign"] += len(set(reader.seqs) - set(expected[owner]))
                found["disordered"] += reader.seqs != sorted(reader.seqs)
                found["reset"] += reader.resets
        return +found
