"""Limits before anything is parsed: how long an address, how many headers, how large a body; and safe headers."""

from __future__ import annotations

import asyncio

from starlette.exceptions import HTTPException
from starlette.requests import HTTPConnection
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from telecine.api.http.auth import RequireScope
from telecine.api.http.problems import of_error, problem
from telecine.engine.accounts.keys import Scope as KeyScope
from telecine.errors import BadSpec, TelecineError, TooLarge
from telecine.json_limits import MAX_DEPTH, MAX_VALUES, check_json

MAX_ADDRESS = 8_192
MAX_HEADERS = 32_768
# Bodies of these routes are files: whoever takes them counts for himself.
STREAMED = ("/api/v1/uploads", "/api/worker/artifacts/")
# Plans of long films have thousands of pieces. Who sends so much shows his key before anything of it is read: a route
# asks for it only afterwards.
WORKERS = "/api/worker/"
MAX_OF_WORKERS = 32 << 20
# A worker bounds one outcome by a million; around it are the fields of the request.
MAX_VALUES_OF_WORKERS = 1_100_000
LONG = 64 << 10  # bytes; to look through more takes a thread
AROUND = 8  # levels of a request around the spec or the result that it holds
_of_a_worker = RequireScope(KeyScope.WORKER)

SAFE = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "X-Frame-Options": "DENY",
}
# For what a browser shows as a document, unless its route has a policy of its own.
DOCUMENT = {
    **SAFE,
    "Content-Security-Policy": "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "Permissions-Policy": "camera=(), microphone=(), geolocation=()",
    "Cross-Origin-Opener-Policy": "same-origin",
}
DOCUMENTS = (b"text/html", b"application/json", b"application/problem+json", b"text/plain")

_SAFE = tuple((name.lower().encode(), value.encode()) for name, value in SAFE.items())
_DOCUMENT = tuple((name.lower().encode(), value.encode()) for name, value in DOCUMENT.items())


class RequestLimits:
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
                most = max(most, MAX_OF_WORKERS)
            refusal = of_error(self._too_large(most)) if length > most else await _stranger(scope)
        if refusal is not None:
            await refusal(scope, receive, _with_safe_headers(send))
            return
        values = MAX_VALUES_OF_WORKERS if scope["path"].startswith(WORKERS) else MAX_VALUES
        counted = receive if is_streamed else self._counted(receive, most, values)
        await self._app(scope, counted, _with_safe_headers(send))

    def _counted(self, receive: Receive, most: int, values: int) -> Receive:
        seen, parts = 0, list[bytes]()

        async def counted() -> Message:
            nonlocal seen
            message = await receive()
            if message["type"] != "http.request":
                return message
            seen += len(message.get("body", b""))
            parts.append(message.get("body", b""))
            if seen > most:
                # FastAPI takes any other error while it reads a body for a body that cannot be parsed.
                raise HTTPException(413, str(self._too_large(most)))
            if not message.get("more_body"):
                body = b"".join(parts)
                parts.clear()
                await asyncio.to_thread(_check_values, body, values) if seen > LONG else _check_values(body, values)
            return message

        return counted

    def _too_large(self, most: int) -> TooLarge:
        return TooLarge(f"a body of over {most} bytes is not read; films go to /api/v1/uploads")


def _check_values(body: bytes, values: int) -> None:
    """Before the body is parsed."""
    try:
        check_json(body, "the body", max_values=values, max_depth=MAX_DEPTH + AROUND)
    except BadSpec as error:
        raise HTTPException(422, str(error)) from None


def _unread(scope: Scope) -> ASGIApp | None:
    """What is said to an address or to headers that are too long to be read."""
    if len(scope.get("raw_path") or b"") + len(scope.get("query_string") or b"") > MAX_ADDRESS:
        return problem(414, "address_too_long", f"an address of over {MAX_ADDRESS} bytes is not read")
    if sum(len(name) + len(value) for name, value in scope["headers"]) > MAX_HEADERS:
        return problem(431, "headers_too_large", f"headers of over {MAX_HEADERS} bytes are not read")
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
            is_document = known.get(b"content-type", b"").startswith(DOCUMENTS)
            wanted = _DOCUMENT if is_document else _SAFE
            message["headers"] = [*given, *[pair for pair in wanted if pair[0] not in known]]
        await send(message)

    return sent
