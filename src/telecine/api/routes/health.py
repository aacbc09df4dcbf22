"""How the server is, for probes and for Prometheus."""

from __future__ import annotations

import hmac
from ipaddress import ip_address

from starlette.requests import HTTPConnection, Request
from starlette.responses import PlainTextResponse, Response

from telecine.api.http.auth import Anybody, address_of, caller_or_nobody
from telecine.api.http.context import Here, ServerContext
from telecine.api.http.json_response import answer
from telecine.api.http.problems import answers
from telecine.api.http.routing import Router
from telecine.engine.accounts.keys import Scope
from telecine.engine.queries.health import FullHealth, Health
from telecine.errors import KeyInvalid, NotAllowed

router = Router(tags=["health"])

PROMETHEUS = "text/plain; version=0.0.4; charset=utf-8"
FORWARDED = ("forwarded", "x-forwarded-for", "x-forwarded-host", "x-real-ip", "via")
HERE = ("localhost", "127.0.0.1", "::1")
UNCACHED = {"Cache-Control": "no-store"}


@router.get("/health", response_model=Health, responses={503: {"model": Health}})
async def health(house: Here, _: Anybody) -> Response:
    """Whether this server can serve: 503 with the reasons if not. Looks at most once a second."""
    told = await house.vitals.health()
    return answer(told, status=200 if told.status == "ok" else 503, headers=UNCACHED)


@router.get("/api/health", response_model=FullHealth, responses={503: {"model": FullHealth}})
async def full_health(house: Here, _: Anybody) -> Response:
    """The same with storage, database and processing in numbers."""
    told = await house.vitals.full()
    return answer(told, status=200 if told.status == "ok" else 503, headers=UNCACHED)


@router.get("/health/live", response_class=PlainTextResponse)
async def live(_: Anybody) -> Response:
    """The process answers; nothing else is looked at."""
    return PlainTextResponse("ok\n", headers=UNCACHED)


@router.get("/metrics", response_class=PlainTextResponse, responses=answers(401, 403, 429))
async def metrics(request: Request, house: Here, _: Anybody) -> Response:
    """Metrics for Prometheus: with `metrics_token`, with an administrator's key, or, while there is no token, from this
    machine."""
    await _may_read(request, house)
    return Response(await house.metrics(), media_type=PROMETHEUS, headers=UNCACHED)


async def _may_read(connection: HTTPConnection, house: ServerContext) -> None:
    word, _, text = connection.headers.get("authorization", "").partition(" ")
    token = house.settings.metrics_token
    if token and word.lower() == "bearer" and hmac.compare_digest(text.strip().encode(), token.encode()):
        return
    caller = await caller_or_nobody(connection)
    if caller is not None:
        if caller.scope is not Scope.ADMIN:
            raise NotAllowed("metrics need an administrator's key, or the metrics_token of the settings")
        return
    if token or not _is_here(connection):
        house.rates.stranger(address_of(connection))
        raise KeyInvalid("metrics need the metrics_token of the settings, or an administrator's key")


def _is_here(connection: HTTPConnection) -> bool:
    """Somebody on this machine, by an address of this machine: neither through a proxy nor through somebody's browser
    that was led to us by a name."""
    if any(name in connection.headers for name in FORWARDED):
        return False
    try:
        is_loopback = ip_address(address_of(connection)).is_loopback
    except ValueError:
        return False
    return is_loopback and (connection.url.hostname or "") in HERE
