"""Server-sent events: one long answer to a GET, which browsers and curl understand by themselves."""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from typing import Annotated, Any

from fastapi import Header, Query
from pydantic import BaseModel, Field
from starlette.responses import Response
from starlette.types import Receive, Scope, Send
from starlette.websockets import WebSocketDisconnect

from telecine.api.http.auth import Owner
from telecine.api.http.context import Here
from telecine.api.http.json_response import answer
from telecine.api.http.problems import answers, of_error
from telecine.api.http.routing import Router
from telecine.api.live.admission import Listener
from telecine.api.live.filters import EventFilter, StreamPosition, place_in, wanted_by
from telecine.api.live.hub import Hub, hub_of
from telecine.api.live.reader import StreamReader, StreamStart
from telecine.api.live.snapshot import snapshot
from telecine.api.live.sse_events import PLAIN
from telecine.engine.accounts.tickets import LIFE, make
from telecine.errors import NotFound, StoreError, TooMany
from telecine.facts import SECOND

log = logging.getLogger(__name__)
router = Router(tags=["events"])

RETRY_MS = 3_000
GOODBYE_SECONDS = 1.0
# What it is called when somebody has gone.
LEFT = (OSError, WebSocketDisconnect)
HEADERS = {
    "Content-Type": "text/event-stream; charset=utf-8",
    "Cache-Control": "no-store",
    # A proxy that gathers bytes before it passes them on would hold events back.
    "X-Accel-Buffering": "no",
}
EXAMPLE = (
    "id: 105\nevent: job.completed\n"
    'data: {"seq":105,"at":1700000000000,"kind":"job.completed","owner":"ada","job":7,"flow":"thumbnails",'
    '"subject":["picture","holiday"],"stage":null,"task":null,"token":null,"worker":null,"worker_name":null,"data":null}\n\n'
)
STREAM: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "Events, until the reader or the server ends it",
        "content": {"text/event-stream": {"schema": {"type": "string"}, "example": EXAMPLE}},
    }
}


class Ticket(BaseModel):
    """Put it into the address of one stream: `/api/v1/events?ticket=…` or `/api/v1/ws?ticket=…`."""

    ticket: str = Field(examples=["tcn_owner_…"])
    expires_in: int = Field(description="Seconds in which it must be used, once", examples=[30])


@router.post("/api/v1/events/ticket", status_code=201, response_model=Ticket, responses=answers(401, 403, 429))
async def make_ticket(who: Owner, house: Here) -> Response:
    """Make a ticket that opens one stream, for a browser that can send no key."""
    issued = await make(house.keys, who)
    made = Ticket(ticket=issued.text, expires_in=LIFE // SECOND)
    return answer(made, status=201, headers={"Cache-Control": "no-store"})


@router.get("/api/v1/events", response_class=Response, responses={**STREAM, **answers(401, 403, 404, 422, 429)})
async def follow_events(
    who: Listener,
    house: Here,
    *,
    job: Annotated[int | None, Query(ge=1, le=2**53, description="Only of this job")] = None,
    subject: Annotated[str | None, Query(max_length=300, description="Only about this: kind:id")] = None,
    worker: Annotated[int | None, Query(ge=1, le=2**53, description="Only of this worker (administrators)")] = None,
    kinds: Annotated[str | None, Query(max_length=2_000, description="Only of these kinds: job.*,task.failed")] = None,
    after: Annotated[str | None, Query(max_length=40, description="Go on after this id")] = None,
    with_snapshot: Annotated[bool, Query(alias="snapshot", description="Begin with how things stand")] = False,
    follow: Annotated[bool, Query(description="Stay for what comes; false: end with what has happened")] = True,
    last_event_id: Annotated[str | None, Header(max_length=40, description="Sent by browsers that come back")] = None,
    ticket: Annotated[str | None, Query(max_length=200, description="In place of a key, once")] = None,
) -> Response:
    """Follow what happens, from now on or after the event whose id is given, without a gap."""
    given = {"job": job, "subject": subject, "worker": worker, "kinds": kinds}
    wanted = wanted_by(who, {name: value for name, value in given.items() if value is not None})
    await check_job(house, wanted)
    asked = last_event_id or after
    start = place_in(asked) if asked else None
    if start is None and not follow:
        start = StreamPosition(await house.engine.events.oldest())
    reader = StreamReader(who, PLAIN, wanted)
    return EventStreamResponse(hub_of(house), reader, StreamStart(start, with_snapshot, follow))


async def check_job(house: Here, wanted: EventFilter) -> None:
    """A foreign job is as absent as an unknown one."""
    if wanted.job is not None:
        owner = (await house.engine.queries.job(wanted.job)).owner
        if wanted.sees is not None and owner != wanted.sees:
            raise NotFound(f"there is no job {wanted.job}")


class EventStreamResponse(Response):
    """An answer that ends when the reader goes, the server stops, or the key is no longer valid."""

    def __init__(self, hub: Hub, reader: StreamReader, hello: StreamStart) -> None:
        super().__init__(headers=HEADERS)
        del self.headers["content-length"]
        self._hub = hub
        self._reader = reader
        self._hello = hello

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        hub, reader = self._hub, self._reader
        if scope["method"] == "HEAD":
            await Response(headers=self.headers)(scope, receive, send)
            return
        try:
            await hub.join(reader)
        except TooMany as error:
            await of_error(error)(scope, receive, send)
            return
        try:
            await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
            await _send(send, f"retry: {RETRY_MS}\n\n".encode())
            await first_of(self._pump(send), _gone(receive), reader.ended)
            with suppress(OSError, TimeoutError):
                async with asyncio.timeout(GOODBYE_SECONDS):
                    await self._say_goodbye(send)
        finally:
            hub.leave(reader)

    async def _pump(self, send: Send) -> None:
        reader, mono = self._reader, self._hub.house.world.mono
        try:
            async for lines in reader.read(self._hub, self._hello, self._snapshot):
                await _send(send, b"".join(lines))
                reader.said_at = mono()
        except StoreError as error:  # the reader comes back by itself, and goes on where it was
            log.warning("a stream of events breaks off: %s", error)

    async def _say_goodbye(self, send: Send) -> None:
        if self._reader.ended.done() and (reason := self._reader.ended.result()) != "closing":
            await _send(send, PLAIN.wire(PLAIN.about("end", {"reason": reason}), None))
        await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _snapshot(self, wanted: EventFilter, place: StreamPosition) -> bytes:
        body = await snapshot(self._hub.house.engine, self._hub.announcer, wanted)
        return PLAIN.wire(PLAIN.about("snapshot", {"seq": place.seq, **body}), place)


async def first_of(*waits: Any) -> None:
    """Until one of them has ended; the others are told to."""
    tasks = [asyncio.ensure_future(one) for one in waits]
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            if not task.done() and isinstance(task, asyncio.Task):
                task.cancel()
        await asyncio.gather(*(task for task in tasks if isinstance(task, asyncio.Task)), return_exceptions=True)
    for task in done:
        if not task.cancelled() and (error := task.exception()) is not None and not isinstance(error, LEFT):
            raise error


async def _send(send: Send, body: bytes) -> None:
    await send({"type": "http.response.body", "body": body, "more_body": True})


async def _gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
