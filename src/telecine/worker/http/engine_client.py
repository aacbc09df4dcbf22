"""The worker's words over HTTP."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from telecine.errors import KeyInvalid
from telecine.facts import (
    Brief,
    HeldLease,
    KeptArtifact,
    Lease,
    LeaseOutcome,
    LogEntry,
    Millis,
    Mode,
    Orders,
    Released,
    SettleReply,
    StoredArtifact,
    TaskId,
    WorkerId,
)
from telecine.wire.convert import (
    answer_from,
    brief_from,
    holding_to,
    kept_to,
    lease_from,
    line_to,
    orders_from,
    word_to,
)
from telecine.wire.fields import MAX_LINES
from telecine.wire.registration import NAME_HEADER, VERSION, EnlistResponse, TermsResponse
from telecine.wire.responses import (
    ArtifactsResponse,
    BriefResponse,
    ClaimResponse,
    OrdersResponse,
    SettleResponse,
)
from telecine.worker.http.artifact_client import HttpArtifacts
from telecine.worker.http.connection import M, Server, ShutOutSignal, read
from telecine.worker_facts import NO_TOTALS, Registration, Totals
from telecine.world import World

if TYPE_CHECKING:
    from telecine.worker.engine_api import EngineApi

log = logging.getLogger(__name__)


WAIT = 20.0  # seconds that an idle worker's question stays open; proxies cut what is silent for longer


class HttpEngine:
    """What `Words` promises. A word whose answer was lost is said again with the same request id or token."""

    def __init__(self, server: Server, barred: ShutOutSignal, world: World, *, wait: float = WAIT) -> None:
        self._server = server
        self._barred = barred
        self._world = world
        self._wait = wait
        self._enlisting: str | None = None  # the request that has no answer yet
        self._hurry = asyncio.Event()
        self._told = ""
        self.key_name = ""  # as the server calls it; known with its terms
        self.fruitless = False  # the last claim came back with nothing, and sooner than it should
        self.place = HttpArtifacts(server, world)

    async def shut_out(self) -> KeyInvalid:
        return await self._barred.wait()

    def hurry(self) -> None:
        """From now on no claim waits: the worker is about to leave."""
        self._hurry.set()

    async def terms(self) -> TermsResponse:
        answer = await self._server.ask("GET", "terms")
        found = read(TermsResponse, answer)
        self.key_name = unquote(answer.headers.get(NAME_HEADER, ""))
        self.place.links = found.links
        return found

    # -- the words -----------------------------------------------------------------------------------

    async def enlist(self, registration: Registration) -> WorkerId:
        self._enlisting = self._enlisting or self._world.new_id()
        said = ("name", "hostname", "lanes", "slots", "release", "labels", "capabilities", "metadata")
        body = {name: getattr(registration, name) for name in said}
        found = await self._server.say(
            "enlist", EnlistResponse, {"version": VERSION, "request": self._enlisting, **body}
        )
        self._enlisting = None
        return WorkerId(found.worker)

    async def claim(self, worker: WorkerId, request: str, lanes: Mapping[str, str], wanted: int) -> list[Lease]:
        """Waits at the server; whoever leaves meanwhile asks once more: it may have been granted something."""
        body = {"worker": worker, "request": request, "lanes": dict(lanes), "wanted": min(wanted, 1_000)}
        self.fruitless, began, wait = True, self._world.mono(), 0.0 if self._hurry.is_set() else self._wait
        asking = asyncio.ensure_future(self._server.say("claim", ClaimResponse, {**body, "wait": wait}, wait=wait))
        hurried = asyncio.ensure_future(self._hurry.wait())
        try:
            await asyncio.wait({asking, hurried}, return_when=asyncio.FIRST_COMPLETED)
            if wait and not asking.done():
                asking.cancel()
                await asyncio.gather(asking, return_exceptions=True)
                found = await self._server.say("claim", ClaimResponse, {**body, "wait": 0.0})
            else:
                found = await asking
        finally:
            hurried.cancel()
            asking.cancel()
        self.fruitless = not found.leases and self._world.mono() - began < self._wait / 2
        return [lease_from(lease) for lease in found.leases]

    async def glance(self, lanes: Mapping[str, str]) -> bool:
        return True

    async def brief(self, lease: Lease) -> Brief:
        return brief_from(await self._about("brief", BriefResponse, lease))

    async def artifacts(self, lease: Lease, stages: Sequence[str]) -> list[StoredArtifact]:
        return (await self._about("artifacts", ArtifactsResponse, lease, stages=list(stages))).shelved

    async def published(self, lease: Lease) -> list[StoredArtifact]:
        return (await self._about("published", ArtifactsResponse, lease)).shelved

    async def _about(self, word: str, kind: type[M], lease: Lease, **more: Any) -> M:
        return await self._server.say(word, kind, {"task_id": lease.task_id, "token": lease.token, **more})

    async def beat(self, worker: WorkerId, held: Sequence[HeldLease], totals: Totals = NO_TOTALS) -> Orders:
        counts = {"load": totals.load, "done": totals.done, "failed": totals.failed}
        body = {"worker": worker, "held": [holding_to(one) for one in held], **counts}
        said = await self._server.say("heartbeat", OrdersResponse, body)
        if said.why is not None and said.why != self._told:
            self._told = said.why
            log.warning("%s; until then it gets no more work", said.why)
        return orders_from(said)

    async def keep(self, task_id: TaskId, token: int, items: Sequence[KeptArtifact]) -> None:
        await self._server.tell("keep", {"task_id": task_id, "token": token, "items": [kept_to(one) for one in items]})

    async def log(self, lines: Sequence[LogEntry]) -> None:
        for start in range(0, len(lines), MAX_LINES):
            await self._server.tell("log", {"lines": [line_to(line) for line in lines[start : start + MAX_LINES]]})

    async def settle(self, words: Sequence[LeaseOutcome]) -> list[SettleReply]:
        said = await self._server.say("settle", SettleResponse, {"words": [word_to(word) for word in words]})
        return [answer_from(one) for one in said.answers]

    async def release(self, leases: Iterable[tuple[TaskId, int]], reason: str = "released") -> list[SettleReply]:
        return await self.settle([LeaseOutcome(task, token, Released(reason)) for task, token in leases])

    async def set_mode(self, worker: WorkerId, mode: Mode, *, revoke: bool = False) -> None:
        """A worker may only say that it drains; the rest is for administrators."""
        if mode is not Mode.DRAINING or revoke:
            raise ValueError(f"a worker over HTTP cannot make itself {mode}")
        await self._server.tell("drain", {"worker": worker})

    async def sweep(self, period: Millis) -> int | None:
        """The server does it."""
        return None

    async def retire(self, worker: WorkerId) -> None:
        await self._server.tell("retire", {"worker": worker})


if TYPE_CHECKING:

    def _is_an_engine_api(engine: HttpEngine) -> EngineApi:
        return engine


class HttpBell:
    """The claim itself waits at the server; here is only the pause after one that could not."""

    vague = False

    def __init__(self, words: HttpEngine) -> None:
        self._words = words

    def ring(self, lanes: Iterable[str]) -> None:
        return None

    async def wait(self, timeout: float) -> None:
        await asyncio.sleep(timeout if self._words.fruitless else 0)

    async def close(self) -> None:
        return None
