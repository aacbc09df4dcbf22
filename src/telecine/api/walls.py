"""Limits before anything is parsed: how long an address, how many headers, how large a body; and safe headers."""

from __future__ import annotations

from starlette.exceptions import HTTPException
from starlette.requests import HTTPConnection
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from telecine.api.auth import Needs
from telecine.api.problems import of_error, problem
from telecine.engine.keys import Scope as KeyScope
from telecine.errors import TelecineError, TooLarge

MOST_ADDRESS = 8_192
MOST_HEADERS = 32_768
# Bodies of these routes are files: whoever takes them counts for himself.
STREAMED = ("/api/v1/uploads", "/api/worker/artifacts/")
# Plans of long films have thousands of pieces. Who sends so much shows his key before anything of it is read: a route
# asks for it only afterwards.
WORKERS = "/api/worker/"
MOST_OF_WORKERS = 32 << 20
_of_a_worker = Needs(KeyScope.WORKER)

SAFE = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "X-Frame-Options": "DENY",
}

_SAFE = tuple((name.lower().encode(), value.encode()) for name, value in SAFE.items())


class Walls:
    """Stands before the whole application."""

    def __init__(self, app: ASGIApp, *, most_body: int) -> None:
        self._app = app
        self._most_body = most_body

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        is_streamed, refusal = scope["path"].startswith(STREAMED), _unread(scope)
        most, length = self._most_body, 0 if is_streamed else _length(scope)
        if refusal is None and length > most:
            if scope["path"].startswith(WORKERS):
                most = max(most, MOST_OF_WORKERS)
            refusal = of_error(self._too_large(most)) if length > most else await _stranger(scope)
        if refusal is not None:
            await refusal(scope, receive, send)
            return
        await self._app(scope, receive if is_streamed else self._counted(receive, most), _with_safe_headers(send))

    def _counted(self, receive: Receive, most: int) -> Receive:
        seen = 0

        async def counted() -> Message:
            nonlocal seen
            message = await receive()
            seen += len(message.get("body", b""))
            if seen > most:
                # FastAPI takes any other error while it reads a body for a body that cannot be parsed.
                raise HTTPException(413, str(self._too_large(most)))
            return message

        return counted

    def _too_large(self, most: int) -> TooLarge:
        return TooLarge(f"a body of over {most} bytes is not read; films go to /api/v1/uploads")


def _unread(scope: Scope) -> ASGIApp | None:
    """What is said to an address or to headers that are too long to be read."""
    if len(scope.get("raw_path") or b"") + len(scope.get("query_string") or b"") > MOST_ADDRESS:
        return problem(414, "address_too_long", f"an address of over {MOST_ADDRESS} bytes is not read")
    if sum(len(name) + len(value) for name, value in scope["headers"]) > MOST_HEADERS:
        return problem(431, "headers_too_large", f"headers of over {MOST_HEADERS} bytes are not read")
    return None


async def _stranger(scope: Scope) -> ASGIApp | None:
    """What is said to whoever sends much and is no worker."""
    try:
        await _of_a_worker(HTTPConnection(scope))
    except TelecineError as error:
        return of_error(error)
    return None


def _length(scope: Scope) -> int:
    text: bytes = dict(scope["headers"]).get(b"content-length", b"0")
    return int(text) if text.isdigit() else 0


def _with_safe_headers(send: Send) -> Send:
    async def sent(message: Message) -> None:
        if message["type"] == "http.response.start":
            given = message.get("headers", ())
            known = dict(given)
            message["headers"] = [*given, *[pair for pair in _SAFE if pair[0] not in known]]
        await send(message)

    return sent
