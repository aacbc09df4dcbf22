"""Every request has an id, and observers that hear of it: when it comes, when its answer begins, when it is over.

The id comes from the caller if it is sane, so that one can follow a request through proxies; it is in the answer's
header, in problems as `instance`, and in every log line that is written meanwhile.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import structlog
from starlette.types import ASGIApp, Message, Receive, Scope, Send

log = logging.getLogger(__name__)

HEADER = "X-Request-Id"
_HEADER = HEADER.lower().encode()
SANE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:-]{0,63}")
# Where nobody serves: one name for all of it.
NOWHERE = "(none)"
EVENTS = b"text/event-stream"


@dataclass(slots=True)
class RequestInFlight:
    """A request on its way. `route` is the template of its address;
    `status` is 0 while there is no answer, `is_told` when it is whole."""

    id: str
    kind: str
    method: str
    headers: Sequence[tuple[bytes, bytes]]
    route: str = NOWHERE
    status: int = 0
    seconds: float = 0.0
    key_id: str | None = None
    is_stream: bool = False
    is_told: bool = False


class RequestObserver(Protocol):
    """Hears of requests; must be quick, and must not raise."""

    def came(self, visit: RequestInFlight) -> None: ...

    def answered(self, visit: RequestInFlight) -> None: ...

    def over(self, visit: RequestInFlight) -> None: ...


class RequestIdMiddleware:
    """Stands before everything else, even before the walls."""

    def __init__(
        self,
        app: ASGIApp,
        watchers: Sequence[RequestObserver],
        mono: Callable[[], float],
        new_id: Callable[[], str],
    ) -> None:
        self._app, self._mono, self._new_id = app, mono, new_id
        self._came = tuple(watcher.came for watcher in watchers)
        self._answered = tuple(watcher.answered for watcher in watchers)
        self._over = tuple(watcher.over for watcher in watchers)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return
        visit = self._visit(scope)
        began = self._mono()
        named = structlog.contextvars.bind_contextvars(request=visit.id)
        try:
            _tell(self._came, visit)
            await self._app(scope, receive, self._heard(visit, scope, send))
        except Exception:
            # Logged here, where the request has its id; whoever serves us need not hear of it if he was answered.
            log.exception("a bug in %s %s", visit.method, visit.route)
            if not visit.is_told:
                raise
        finally:
            visit.seconds = self._mono() - began
            visit.status = visit.status or 500
            _look(visit, scope)
            _tell(self._over, visit)
            structlog.contextvars.reset_contextvars(**named)

    def _visit(self, scope: Scope) -> RequestInFlight:
        known = dict(scope["headers"]).get(_HEADER, b"").decode("ascii", "replace")
        scope.setdefault("state", {})
        return RequestInFlight(
            id=known if known and SANE.fullmatch(known) else self._new_id(),
            kind=scope["type"],
            method=scope.get("method", "GET"),
            headers=scope["headers"],
        )

    def _heard(self, visit: RequestInFlight, scope: Scope, send: Send) -> Send:
        async def sent(message: Message) -> None:
            kind = message["type"]
            if kind == "http.response.start":
                visit.status = message["status"]
                given = [pair for pair in message.get("headers", ()) if pair[0] != _HEADER]
                message["headers"] = [*given, (_HEADER, visit.id.encode())]
                visit.is_stream = dict(given).get(b"content-type", b"").startswith(EVENTS)
                _look(visit, scope)
                _tell(self._answered, visit)
            elif kind == "http.response.body":
                visit.is_told = not message.get("more_body", False)
            elif kind == "websocket.accept":
                visit.status, visit.is_stream = 101, True
                _look(visit, scope)
                _tell(self._answered, visit)
            elif kind == "websocket.close" and not visit.status:
                visit.status = 403
            await send(message)

        return sent


def _tell(watchers: Iterable[Callable[[RequestInFlight], None]], visit: RequestInFlight) -> None:
    for tell in watchers:
        tell(visit)


def _look(visit: RequestInFlight, scope: Scope) -> None:
    state: dict[str, Any] = scope["state"]
    visit.route = getattr(scope.get("route"), "path", None) or state.get("route") or NOWHERE
    visit.key_id = state.get("key_id")


def current_id() -> str | None:
    """The id of the request that is being answered."""
    found: str | None = structlog.contextvars.get_contextvars().get("request")
    return found
