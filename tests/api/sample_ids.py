"""Something of each kind that belongs to Ada, and an id of that kind which nobody has: by parameters of addresses."""

from __future__ import annotations

import base64
from collections.abc import Awaitable, Callable
from typing import Any

from fastapi.routing import APIRoute

from telecine.facts import Failed
from tests.api.in_process_server import Front
from tests.support.builders import a_flow

Maker = Callable[[Front], Awaitable[str]]

UNKNOWN = {
    "job_id": "987654",
    "task_id": "987654",
    "worker_id": "987654",
    "key_id": "0123456789ab",
    "webhook_id": "987654",
    "delivery_id": "987654",
    "upload_id": "0123456789abcdef0123456789abcdef",
    "video_id": "no-such-video",
    "video": "no-such-video",
    "link": "tcn_link_x",
    "piece": "1-1.m4s",
    "number": "1",
    "flow": "nosuch",
    "name": "film.mp4",
    "task": "987654",
    "token": "1",
    "key": "987654/a",
}
# What a route needs besides its address to come as far as the thing itself.
BODIES: dict[str, Any] = {"edit_job": {"priority": 1}}
HEADERS = {
    "send_bytes": {"Upload-Offset": "0", "Content-Type": "application/offset+octet-stream"},
    "send_bytes_by_another_word": {
        "Upload-Offset": "0",
        "Content-Type": "application/offset+octet-stream",
        "X-HTTP-Method-Override": "PATCH",
    },
}
TUS = {"Tus-Resumable": "1.0.0"}


async def job(front: Front) -> str:
    return str(await front.bed.submit(owner="ada"))


async def failed_task(front: Front) -> str:
    await front.bed.enact(a_flow())
    await front.bed.submit(owner="ada")
    [lease] = await front.bed.claim(1)
    await front.bed.settle(lease, Failed("no", permanent=True))
    return str(lease.task_id)


async def key(front: Front) -> str:
    return next(found.id for found in await front.house.keys.list(owner="ada"))


async def video(front: Front) -> str:
    await front.bed.submit(owner="ada", subject=("video", "hers"))
    return "hers"


async def webhook(front: Front) -> str:
    made = await front.ada.post("/api/v1/webhooks", json={"url": "https://example.org/hook"})
    assert made.status_code == 201, made.text
    found = made.json()
    return str(found.get("id") or found["webhook"]["id"])


async def delivery(front: Front) -> str:
    await front.ada.post(f"/api/v1/webhooks/{await webhook(front)}/test")
    listed = (await front.ada.get("/api/v1/webhooks/deliveries")).json()["items"]
    return str(listed[0]["id"]) if listed else await _written_delivery(front)


async def _written_delivery(front: Front) -> str:
    [hook] = await front.bed.sql("select max(id) as id from webhook")
    await front.bed.sql(
        "insert into delivery (webhook_id, event_seq, kind, body, state, next_at, created_at, host)"
        f" values ({hook['id']}, 1, 'job.completed', '{{}}', 'dead', 1, 1, 'example.org')"
    )
    [row] = await front.bed.sql("select max(id) as id from delivery")
    return str(row["id"])


async def upload(front: Front) -> str:
    name = base64.b64encode(b"film.mp4").decode()
    made = await front.ada.post(
        "/api/v1/uploads", headers={**TUS, "Upload-Length": "10", "Upload-Metadata": f"filename {name}"}
    )
    assert made.status_code == 201, made.text
    return made.headers["location"].rpartition("/")[2]


MAKERS: dict[str, Maker] = {
    "job_id": job,
    "task_id": failed_task,
    "key_id": key,
    "video_id": video,
    "webhook_id": webhook,
    "delivery_id": delivery,
    "upload_id": upload,
}


def place(route: APIRoute, **given: str) -> str:
    """The address of a route; what is not given is of nobody."""
    known = {**UNKNOWN, **given}
    return route.path_format.format(**{name: known[name] for name in route.param_convertors})
