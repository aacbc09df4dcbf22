"""One way to the server. Whatever it says is an answer, an error of ours, or "ask again".

Only a problem in our own words counts as a refusal: what proxies, captive portals and half-started servers say is
taken for an outage, and outages pass.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from concurrent.futures import Future
from types import TracebackType
from typing import Any, TypeVar

import httpx
from pydantic import BaseModel, ValidationError

from telecine.errors import (
    ArtifactDamaged,
    ChildFailed,
    Conflict,
    KeyInvalid,
    LeaseLost,
    MediaRefused,
    NotFound,
    Refused,
    Rejected,
    StoreBroken,
    TelecineError,
    Unreachable,
    WorkerGone,
)
from telecine.json_text import dumps
from telecine.wire.registration import WireVersionMismatch
from telecine.worker.contact import WorkerShutOut

CONNECT_SECONDS = 10.0
ANSWER_SECONDS = 30.0
PROBLEM = "application/problem+json"
LEASE_CODES = ("lease_lost", "lease_expired", "job_cancelled")
BAD_BYTES = ("bad_artifact", "bad_hash", "already_kept")
SHUT_OUT = (401, 403)
SERVER = 500
HEADS = {404: "not_found", 409: "lease_lost"}
# Only 413 and 422 are about a value. The others are about the request: a proxy or a server of another release.
KINDS: dict[int, type[TelecineError]] = {
    400: StoreBroken, 404: NotFound, 405: StoreBroken, 409: Conflict, 410: WorkerGone, 411: StoreBroken, 413: Rejected,
    414: StoreBroken, 416: Refused, 422: Rejected, 431: StoreBroken,
}  # fmt: skip
PIECE = 64 << 10

M = TypeVar("M", bound=BaseModel)


class ShutOutSignal:
    """Set once, from any thread, when the server does not know the worker's key any more."""

    def __init__(self) -> None:
        self._why: Future[KeyInvalid] = Future()

    def tell(self, why: str) -> None:
        if not self._why.done():
            self._why.set_result(KeyInvalid(f"the server does not let this worker in: {why}"))

    async def wait(self) -> KeyInvalid:
        return await asyncio.shield(asyncio.wrap_future(self._why))


class Server:
    """Open it with `async with`; for the loop that opened it."""

    def __init__(
        self, url: str, key: str, barred: ShutOutSignal, *, transport: httpx.AsyncBaseTransport | None = None
    ) -> None:
        self._barred = barred
        self.trace_headers: Callable[[], dict[str, str]] = dict  # what ties a request to the attempt that makes it
        self._client = httpx.AsyncClient(
            base_url=f"{url}/api/worker/",
            headers={"Authorization": f"Bearer {key}"},
            timeout=httpx.Timeout(ANSWER_SECONDS, connect=CONNECT_SECONDS),
            transport=transport,
            limits=httpx.Limits(max_connections=64, max_keepalive_connections=8, keepalive_expiry=20.0),
        )

    async def __aenter__(self) -> Server:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._client.aclose()

    async def say(self, word: str, answer: type[M], body: dict[str, Any], *, wait: float = 0.0) -> M:
        """POST a word; its answer as a value."""
        return read(answer, await self.ask("POST", word, content=dumps(body), wait=wait))

    async def tell(self, word: str, body: dict[str, Any]) -> None:
        """POST a word whose answer is empty."""
        await self.ask("POST", word, content=dumps(body))

    async def ask(
        self,
        method: str,
        path: str,
        *,
        content: str | bytes | None = None,
        headers: dict[str, str] | None = None,
        wait: float = 0.0,
    ) -> httpx.Response:
        """An answer of success; otherwise the error that it stands for."""
        given = {**self.trace_headers(), **(headers or {})}
        if isinstance(content, str):
            given["Content-Type"] = "application/json"
        elif content is not None:
            given["Content-Length"] = str(len(content))
        timeout = httpx.Timeout(ANSWER_SECONDS + wait, connect=CONNECT_SECONDS)
        try:
            sent = _pieces(content) if isinstance(content, bytes) else content
            response = await self._client.request(method, path, content=sent, headers=given, timeout=timeout)
        except Exception as error:  # of the network, the client, or a transport that closed under it: no answer
            raise Unreachable(f"the server did not answer {method} {path}: {type(error).__name__} {error}") from error
        if response.is_success:
            return response
        raise self._error(response, f"{method} {path}")

    def _error(self, response: httpx.Response, asked: str) -> TelecineError:
        status, told = response.status_code, _problem(response)
        if told is None or status >= SERVER:
            why = told.get("detail") if told else response.reason_phrase
            # A server that fails at this request alone, by a bug, may well take others.
            kind = StoreBroken if told is not None and status == SERVER else Unreachable
            return kind(f"the server answered {asked} with {status}: {why}")
        code, detail = str(told.get("code")), str(told.get("detail"))
        if status in SHUT_OUT:
            self._barred.tell(detail)
            return WorkerShutOut(f"the server does not let this worker in: {detail}")
        return _refusal(status, code, detail)


async def _pieces(content: bytes) -> AsyncIterator[bytes]:
    """The time that a slow network may take is counted for each piece, not for all of it."""
    for start in range(0, len(content), PIECE):
        yield content[start : start + PIECE]


def _problem(response: httpx.Response) -> dict[str, Any] | None:
    """The problem in our own words, if it is one. The answer to HEAD has no body: its status speaks."""
    if not response.headers.get("content-type", "").startswith(PROBLEM):
        return None
    if response.request.method == "HEAD":
        return {"code": HEADS.get(response.status_code), "detail": "it is not there, or not yours any more"}
    try:
        found = response.json()
    except ValueError:
        return None
    return found if isinstance(found, dict) and "code" in found else None


def _refusal(status: int, code: str, detail: str) -> TelecineError:
    if code in LEASE_CODES:
        lost = LeaseLost(0, 0, code)
        lost.args = (detail,)
        return lost
    if code in BAD_BYTES:
        return ArtifactDamaged(detail)
    if code == "bad_segment":
        return ChildFailed(detail, code=code)
    if code == "wire_version":
        return WireVersionMismatch(detail)
    if code.startswith(("source_", "not_media", "media_refused")):
        return MediaRefused(detail, code=code)
    # Too many requests, and what later servers may say, may pass.
    return KINDS.get(status, Unreachable)(detail)


def read(kind: type[M], response: httpx.Response) -> M:
    try:
        return kind.model_validate_json(response.content)
    except ValidationError as error:
        [first, *_] = error.errors()
        raise Unreachable(f"the server's answer is not understood ({first['loc']}: {first['msg']})") from error
