"""WebSocket: the same stream in the words of job chains; the reader may say what it wants at any time.

──▶ {"subscribe": {"job": 7}}                 other filters, from here on
──▶ {"after": "105", "snapshot": false}       from another place; both may come in one message
◀── {"type": "snapshot", …}  {"type": "job:started", …, "id": "106"}  …
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections import deque
from contextlib import suppress
from typing import Any

from fastapi import WebSocket, WebSocketDisconnect
from starlette.websockets import WebSocketState

from telecine.api.http.auth import Anybody
from telecine.api.http.context import ServerContext, house_of
from telecine.api.http.problems import of_error
from telecine.api.http.routing import Router
from telecine.api.live.admission import RequireListener
from telecine.api.live.chain_events import CHAIN
from telecine.api.live.filters import EventFilter, StreamPosition, place_in, wanted_by
from telecine.api.live.hub import Hub, hub_of
from telecine.api.live.reader import StreamReader, StreamStart
from telecine.api.live.snapshot import snapshot
from telecine.api.live.sse import GOODBYE_SECONDS, check_job, first_of
from telecine.engine.accounts.keys import Caller
from telecine.errors import BadSpec, StoreError, TelecineError

log = logging.getLogger(__name__)
router = Router()

# A reader that says more than so much in so many seconds is shut out.
MAX_WORDS, WORDS_SECONDS = 20, 10.0
FILTERS = ("job", "subject", "worker", "kinds")
# Codes of the protocol, and one of our own for keys that are no longer valid.
POLICY, GOING_AWAY, BROKEN, KEY_INVALID = 1008, 1001, 1011, 4401

_listens = RequireListener()


@router.websocket("/api/v1/ws")
async def talk(socket: WebSocket, _: Anybody) -> None:
    """Follow what happens in the words of job chains; see docs/events.md."""
    # Whoever comes is asked for a key or a ticket below, so that a refusal is an answer and not a closed socket.
    house = house_of(socket)
    query = dict(socket.query_params)
    try:
        caller = await _listens(socket)
        wanted, hello = await _asked(house, caller, query)
        reader = StreamReader(caller, CHAIN, wanted)
        hub = hub_of(house)
        await hub.join(reader)
    except TelecineError as error:
        _forget_secrets(socket)
        await socket.send_denial_response(of_error(error))
        return
    try:
        _forget_secrets(socket)
        await socket.accept()
        both = SocketSession(socket, hub, reader)
        await first_of(both.speak(hello), both.listen(), reader.ended)
        await both.part()
    finally:
        hub.leave(reader)


def _forget_secrets(socket: WebSocket) -> None:
    """The server logs the address of every handshake: what opened it must not stand there."""
    socket.scope["query_string"] = b""


async def _asked(house: ServerContext, caller: Caller, query: dict[str, str]) -> tuple[EventFilter, StreamStart]:
    wanted = wanted_by(caller, {name: query[name] for name in FILTERS if name in query})
    await check_job(house, wanted)
    after = place_in(query["after"]) if query.get("after") else None
    return wanted, StreamStart(after, snapshot=query.get("snapshot", "1") not in ("0", "false"))


class SocketSession:
    def __init__(self, socket: WebSocket, hub: Hub, reader: StreamReader) -> None:
        self._socket = socket
        self._hub = hub
        self._reader = reader
        self._words: deque[float] = deque(maxlen=MAX_WORDS)
        self._code = 1000

    async def speak(self, hello: StreamStart) -> None:
        reader, mono = self._reader, self._hub.house.world.mono
        try:
            async for lines in reader.read(self._hub, hello, self._snapshot):
                for line in lines:
                    await self._socket.send_text(line.decode())
                reader.said_at = mono()
        except StoreError as error:
            log.warning("a WebSocket breaks off: %s", error)
            self._code = BROKEN

    async def listen(self) -> None:
        with suppress(WebSocketDisconnect):
            while True:
                message = await self._socket.receive()
                if message["type"] == "websocket.disconnect":
                    return
                if not self._may_speak():
                    self._code = POLICY
                    return
                try:
                    await self._obey(_object(message.get("text")))
                except TelecineError as error:
                    told = CHAIN.about("error", {"code": error.code, "detail": str(error)})
                    self._hub.tell_back(self._reader, told)

    def _may_speak(self) -> bool:
        now = self._hub.house.world.mono()
        full = len(self._words) == MAX_WORDS and now - self._words[0] < WORDS_SECONDS
        self._words.append(now)
        return not full

    async def _obey(self, asked: dict[str, Any]) -> None:
        if unknown := next((name for name in asked if name not in ("subscribe", "after", "snapshot")), None):
            raise BadSpec(f"{unknown[:40]!r} is not understood; say subscribe, after or snapshot")
        filters, wanted = asked.get("subscribe"), None
        if filters is not None:
            if not isinstance(filters, dict):
                raise BadSpec('subscribe takes an object of filters: {"subscribe": {"job": 7}}')
            wanted = wanted_by(self._reader.caller, filters)
            await check_job(self._hub.house, wanted)
        after = place_in(str(asked["after"])) if asked.get("after") is not None else self._reader.place
        self._reader.turn(wanted, StreamStart(after, snapshot=bool(asked.get("snapshot", filters is not None))))

    async def part(self) -> None:
        """Say why, if anybody still listens."""
        reason = self._reader.ended.result() if self._reader.ended.done() else ""
        code = {"closing": GOING_AWAY, "key_invalid": KEY_INVALID}.get(reason, self._code)
        if self._socket.application_state is WebSocketState.CONNECTED:
            with suppress(RuntimeError, OSError, TimeoutError, WebSocketDisconnect):
                async with asyncio.timeout(GOODBYE_SECONDS):
                    await self._socket.close(code, reason)

    async def _snapshot(self, wanted: EventFilter, place: StreamPosition) -> bytes:
        body = await snapshot(self._hub.house.engine, self._hub.announcer, wanted)
        return CHAIN.wire(CHAIN.about("snapshot", {"seq": place.seq, **body}), place)


def _object(text: str | None) -> dict[str, Any]:
    try:
        found = json.loads(text or "")
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise BadSpec('say a JSON object: {"subscribe": {"job": 7}}')
    return found
