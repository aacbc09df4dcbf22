"""A front whose postman is at work, and a receiver that it may reach."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

from telecine.facts import Failed
from telecine.wiring import Parts
from telecine.wiring.webhook_sending import posting
from tests.api.in_process_server import Front
from tests.support.builders import a_flow
from tests.support.webhook_receiver import PATIENCE, Heard

# Everything sooner than in production, and receivers on this machine.
BRISK: dict[str, Any] = {
    "allow_private_webhooks": ("127.0.0.1",),
    "webhook_timeout_seconds": 20.0,
    "webhook_backoff_seconds": 0.05,
    "webhook_attempts": 3,
    "poll_seconds": 0.05,
    "public_url": "https://films.example",
}


def brisk(front: Front, **more: Any) -> Parts:
    """The parts of this front with settings for tests; the front itself takes them on, too."""
    settings = front.parts.settings.model_copy(update={**BRISK, **more})
    front.house.settings = settings
    return replace(front.parts, settings=settings)


@asynccontextmanager
async def at_work(front: Front, **more: Any) -> AsyncIterator[None]:
    async with posting(brisk(front, **more)):
        yield


async def hook(front: Front, url: str, **more: Any) -> dict[str, Any]:
    made = await front.ada.post("/api/v1/webhooks", json={"url": url, **more})
    assert made.status_code == 201, made.text
    found: dict[str, Any] = made.json()
    return found


async def a_job(front: Front, *, owner: str = "ada", fails: bool = False) -> int:
    """A job that has ended."""
    if not front.bed.lanes:
        await front.bed.enact(a_flow())
    job = await front.bed.submit(owner=owner, subject=("video", "v-1"))
    await front.bed.run_all(Failed("no film", permanent=True) if fails else None)
    return job


async def deliveries(front: Front, **query: Any) -> list[dict[str, Any]]:
    answer = await front.ada.get("/api/v1/webhooks/deliveries", params=query)
    assert answer.status_code == 200, answer.text
    items: list[dict[str, Any]] = answer.json()["items"]
    return items


async def until(look: Callable[[], Awaitable[Any]]) -> Any:
    """Look until there is something."""
    deadline = time.monotonic() + PATIENCE
    while not (found := await look()):
        assert time.monotonic() < deadline, "it did not come true"
        await asyncio.sleep(0.03)
    return found


async def settled(front: Front, count: int = 1) -> list[dict[str, Any]]:
    """So many deliveries, once none of them waits any more."""

    async def look() -> list[dict[str, Any]] | None:
        found = await deliveries(front)
        ended = len(found) == count and all(one["state"] != "waiting" for one in found)
        return found if ended else None

    found: list[dict[str, Any]] = await until(look)
    return found


def is_genuine(heard: Heard, key: str) -> bool:
    """What a receiver checks, written anew from the specification: nothing of ours is used."""
    secret = base64.b64decode(key.removeprefix("whsec_"))
    text = b".".join([heard.headers["webhook-id"].encode(), heard.headers["webhook-timestamp"].encode(), heard.body])
    good = base64.b64encode(hmac.new(secret, text, hashlib.sha256).digest()).decode()
    given = [part.partition(",") for part in heard.headers["webhook-signature"].split()]
    fresh = abs(time.time() - int(heard.headers["webhook-timestamp"])) < 300
    return fresh and any(version == "v1" and hmac.compare_digest(text, good) for version, _, text in given)
