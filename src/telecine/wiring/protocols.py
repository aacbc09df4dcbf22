"""uvicorn's protocols for HTTP and WebSockets, with bounds on connections and on slow clients."""

from __future__ import annotations

import asyncio
from typing import Any, Final

from starlette.responses import Response
from starlette.types import Receive, Scope, Send
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol

from telecine.api.http.problems import problem
from telecine.wiring.connections import CLOSE_SECONDS, MIN_BODY_BYTES, ClientConnection, ConnectionLimits

# What is larger is refused while it arrives: the walls look only at whole heads.
MAX_HEAD_BYTES: Final = 128 << 10
# What the reserve places serve.
HEALTH: Final = (b"/health", b"/health/live", b"/api/health", b"/metrics")
SLOW: Final = "the request did not arrive in time: send it faster, or in parts"
RETRY: Final = {"Retry-After": "5", "Connection": "close"}


class LimitedHttp(HttpToolsProtocol):
    """Knows how long the client has taken for what it is doing."""

    connection: ClientConnection

    def __init__(self, *args: Any, limits: ConnectionLimits, **more: Any) -> None:
        super().__init__(*args, **more)
        self._limits = limits
        self._bounds = limits.bounds
        self._is_message_open = self._is_head_whole = self._is_upgraded = False
        self._requests = 0
        self._since = self.loop.time()  # when it began to wait for the next head
        self._head_bytes = self._body_bytes = 0
        self._body_since = 0.0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self.connection = self._limits.add(transport, self.client[0] if self.client else None, self)

    def connection_lost(self, exc: Exception | None) -> None:
        self._limits.remove(self.transport)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        was_in_head = self._is_in_head()
        super().data_received(data)
        if was_in_head and self._is_in_head():
            self._head_bytes += len(data)
            if self._head_bytes > MAX_HEAD_BYTES and not self._is_answering():
                self._refuse(431, "headers_too_large", f"headers of over {MAX_HEAD_BYTES} bytes are not read")

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._is_message_open, self._is_head_whole, self._head_bytes = True, False, 0
        if not self._is_answering():
            self._since = self.loop.time()

    def on_headers_complete(self) -> None:
        self._is_head_whole = True
        self._requests += 1
        self._body_since, self._body_bytes = self.loop.time(), 0
        self._limits.work(self.connection)
        if self.connection.refusal is not None and self.url.partition(b"?")[0] not in HEALTH:
            self.app = _Refusal(self.connection.refusal)
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        self._body_bytes += len(body)
        super().on_body(body)

    def on_message_complete(self) -> None:
        super().on_message_complete()
        self._is_message_open = self._is_head_whole = False
        if not self._is_answering():
            self._wait()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if not self._is_answering():
            self._wait()

    def handle_websocket_upgrade(self) -> None:
        if self.connection.refusal is not None:
            self._refuse(503, "too_many", f"{self.connection.refusal}: try again in a moment")
            return
        self._is_upgraded = True
        self._limits.work(self.connection)
        super().handle_websocket_upgrade()

    def is_late(self, now: float) -> bool:
        bounds = self._bounds
        if self._is_upgraded:
            return False
        if self._is_answering():
            return self._is_body_late(now)
        if self._is_message_open and self._is_head_whole:  # it was answered, and goes on to send
            is_late = now - self._since > CLOSE_SECONDS
        elif self._is_message_open or not self._requests:
            is_late = now - self._since > bounds.header_seconds
        else:
            is_late = now - self._since > bounds.idle_seconds + 1.0
        if is_late:
            self._refuse(408, "request_timeout", SLOW) if self._is_message_open else self.transport.close()
        return is_late

    def _is_body_late(self, now: float) -> bool:
        cycle = self.cycle
        if not self._is_message_open or not self._is_head_whole:
            return False
        if self.flow.read_paused or cycle.waiting_for_100_continue:  # it is we who do not read
            self._body_since, self._body_bytes = now, 0
        if now - self._body_since <= self._bounds.body_seconds:
            return False
        is_late = self._body_bytes < MIN_BODY_BYTES
        self._body_since, self._body_bytes = now, 0
        if is_late:
            self._refuse(408, "request_timeout", SLOW)
        return is_late

    def _is_answering(self) -> bool:
        cycle: RequestResponseCycle | None = self.cycle  # none before the first request
        return bool(self.pipeline) or (cycle is not None and not cycle.response_complete)

    def _is_in_head(self) -> bool:
        return self._is_message_open and not self._is_head_whole

    def _wait(self) -> None:
        self._since = self.loop.time()
        self._limits.wait(self.connection)

    def _refuse(self, status: int, code: str, detail: str) -> None:
        """Answer without the application, unless the answer has begun, and close."""
        cycle = self.cycle
        is_answering = self._is_answering()
        is_answered = cycle.response_started if is_answering else self._is_message_open and self._is_head_whole
        if not is_answered and not self.transport.is_closing():
            self.transport.write(_raw(problem(status, code, detail, headers=RETRY)))
        if is_answering:
            cycle.disconnected = True
            cycle.message_event.set()
        self.transport.close()


class LimitedSocket(WebSocketsSansIOProtocol):
    """Counts until its connection is lost. uvicorn itself pings the client."""

    def __init__(self, *args: Any, limits: ConnectionLimits, **more: Any) -> None:
        super().__init__(*args, **more)
        self._limits = limits

    def connection_lost(self, exc: Exception | None) -> None:
        self._limits.remove(self.transport)
        super().connection_lost(exc)


class _Refusal:
    def __init__(self, reason: str) -> None:
        self._answer = problem(503, "too_many", f"{reason}: try again in a moment", headers=RETRY)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._answer(scope, receive, send)


def _raw(answer: Response) -> bytes:
    phrase = {408: "Request Timeout", 431: "Request Header Fields Too Large", 503: "Service Unavailable"}
    head = [f"HTTP/1.1 {answer.status_code} {phrase[answer.status_code]}".encode()]
    head += [name + b": " + value for name, value in answer.raw_headers]
    return b"\r\n".join([*head, b"", bytes(answer.body)])
