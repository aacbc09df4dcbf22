"""Workers that speak to a `Front` over HTTP, as the worker program does."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from telecine.engine.accounts.keys import Scope
from telecine.facts import HeldLease, Lease, WorkerId
from telecine.worker.attempts import Attempt
from telecine.worker.http import HttpEngine, Server, ShutOutSignal
from telecine.worker_facts import Registration
from telecine.world import World
from tests.api.in_process_server import Front
from tests.support.builders import a_flow

FLOW = a_flow("cut", "join")
LANES = {FLOW.graph.lane(number): "film" for number in range(2)}
FOR_EVER = float("inf")
NOBODY = WorkerId(0)


@dataclass
class Hand:
    """One remote worker: its words, and the plain client that says what no proper worker would."""

    words: HttpEngine
    client: httpx.AsyncClient
    key_id: str
    worker: WorkerId = NOBODY

    async def enlist(self, **about: Any) -> WorkerId:
        self.worker = await self.words.enlist(registration(**about))
        return self.worker

    async def take(self, request: str = "request-1", lanes: dict[str, str] | None = None) -> Lease:
        [lease] = await self.words.claim(self.worker, request, lanes or LANES, 1)
        return lease

    async def post(self, word: str, **body: Any) -> httpx.Response:
        return await self.client.post(f"/api/worker/{word}", json=body)

    async def refusal(self, word: str, **body: Any) -> tuple[int, str]:
        """Status and code of an answer that is none of success."""
        answer = await self.post(word, **body)
        return answer.status_code, answer.json()["code"]


def registration(**about: Any) -> Registration:
    return Registration(**{"name": "ann", "hostname": "attic", "lanes": tuple(LANES), "release": "9.0.0", **about})


async def a_hand(front: Front, name: str = "ann", *, wait: float = 0.0, enlisted: bool = True, **how: Any) -> Hand:
    """A remote worker with a key of its own."""
    issued = await front.house.keys.issue(Scope.WORKER, name=name, **how)

    async def door(scope: Any, receive: Any, send: Any) -> None:
        await front.app(scope, receive, send)  # whichever stands there: servers are restarted

    transport = httpx.ASGITransport(door, raise_app_exceptions=False)
    barred = ShutOutSignal()
    server = await front.stays(Server("http://telecine.test", issued.text, barred, transport=transport))
    client = await front.stays(
        httpx.AsyncClient(
            transport=transport,
            base_url="http://telecine.test",
            headers={"Authorization": f"Bearer {issued.text}"},
        )
    )
    hand = Hand(HttpEngine(server, barred, World(), wait=wait), client, issued.id)
    if enlisted:
        await hand.enlist(name=name)
    return hand


def held(lease: Lease) -> Attempt:
    """The lease as a worker that works on it has it."""
    return Attempt(lease, FOR_EVER)


def of(lease: Lease, **more: Any) -> dict[str, Any]:
    return {"task_id": lease.task_id, "token": lease.token, **more}


def holding(lease: Lease, **more: Any) -> HeldLease:
    return HeldLease(task_id=lease.task_id, token=lease.token, **more)


def nowhere(done: int, of: int) -> None:
    """For bytes whose way nobody follows."""


def a_file(folder: Path, content: bytes, name: str = "made") -> Path:
    path = folder / name
    path.write_bytes(content)
    return path
