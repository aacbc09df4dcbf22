"""Every route says who may come, and keeps to it; what belongs to somebody else is as absent as what is not there.

All of it is generated from the application's routes: a route that nobody thought of here fails.
"""

from collections.abc import Iterator

import httpx
from fastapi import FastAPI
from fastapi.dependencies.models import Dependant
from fastapi.routing import APIRoute, APIWebSocketRoute

from telecine.api.http.auth import RequireScope, open_to_all
from telecine.api.http.rate_limits import RateLimits
from telecine.api.openapi.schema import scope_of
from telecine.engine.accounts.keys import Scope
from tests.api.in_process_server import Front
from tests.api.sample_ids import BODIES, HEADERS, MAKERS, TUS, UNKNOWN, place

# Those who are let in would listen until the server ends; whoever is not, is told so at once.
ENDLESS = {"/api/v1/events"}
SHARED = {"flow"}  # belongs to nobody
JSON = {"Content-Type": "application/json"}
SAME = ("content-type", "etag", "cache-control", "vary", "accept-ranges", "allow")


def declared(dependant: Dependant) -> Iterator[object]:
    for inner in dependant.dependencies:
        if isinstance(inner.call, RequireScope) or inner.call is open_to_all:
            yield inner.call
        yield from declared(inner)


def routes_of(app: FastAPI) -> list[APIRoute]:
    return [route for route in app.routes if isinstance(route, APIRoute)]


def unlimited(front: Front) -> None:
    front.house.rates = RateLimits(front.parts.world.mono, per_key=1_000_000, per_stranger=1_000_000)


async def ask(client: httpx.AsyncClient, route: APIRoute, address: str) -> httpx.Response:
    headers = {"X-Request-Id": "one", **HEADERS.get(route.name, {})}
    if "uploads" in route.path:
        headers |= TUS
    method = min(route.methods or ())
    return await client.request(method, address, json=BODIES.get(route.name), headers=headers)


async def test_every_route_declares_exactly_one_scope(front: Front) -> None:
    every = [route for route in front.app.routes if isinstance(route, (APIRoute, APIWebSocketRoute))]

    odd = {route.path: list(declared(route.dependant)) for route in every if len(list(declared(route.dependant))) != 1}

    assert len(every) > 50
    assert odd == {}


async def test_every_scope_is_kept(front: Front) -> None:
    """Two owners, a worker, an administrator and nobody knock at every door."""
    unlimited(front)
    callers = {"ada": front.ada, "bob": front.bob, "admin": front.admin, "worker": front.worker}
    enough = {Scope.OWNER: {"ada", "bob", "admin"}, Scope.ADMIN: {"admin"}, Scope.WORKER: {"worker"}}
    wrong = []
    for route in routes_of(front.app):
        scope = scope_of(route.dependant)
        if scope is None:
            continue
        found = {"nobody": (await ask(front.nobody, route, place(route))).status_code}
        for name, client in callers.items():
            if name not in enough[scope] or route.path not in ENDLESS:
                found[name] = (await ask(client, route, place(route))).status_code
        if not all(_kept(name, code, enough[scope]) for name, code in found.items()):
            wrong.append((route.path, sorted(route.methods or ()), scope.value, found))

    assert wrong == []


def _kept(name: str, status: int, enough: set[str]) -> bool:
    if name == "nobody":
        return status == 401
    return status not in (401, 403, 500) if name in enough else status == 403


async def test_what_belongs_to_somebody_else_is_as_absent_as_what_is_not_there(front: Front) -> None:
    await front.flow()
    unlimited(front)
    things = {name: await make(front) for name, make in MAKERS.items()}
    wrong, count = [], 0
    for route in routes_of(front.app):
        params = set(route.param_convertors) - SHARED
        if scope_of(route.dependant) is not Scope.OWNER or not params or route.name == "put_file":
            continue
        mine = next((name for name in MAKERS if name in params), None)
        assert mine is not None, f"{route.path}: who could own such a thing? Add it to tests/api/sample_ids.py"
        unknown_place, foreign_place = place(route), place(route, **{mine: things[mine]})
        unknown, foreign = await ask(front.bob, route, unknown_place), await ask(front.bob, route, foreign_place)
        same = unknown.text.replace(UNKNOWN[mine], "N") == foreign.text.replace(things[mine], "N")
        count += 1
        if not (unknown.status_code == foreign.status_code == 404 and same):
            wrong.append((route.path, unknown.status_code, foreign.status_code, unknown.text, foreign.text))

    assert count > 20
    assert wrong == []


async def test_what_belongs_to_its_owner_is_there(front: Front) -> None:
    """The test above would be content with a server that shows nothing to anybody."""
    await front.flow()
    unlimited(front)
    things = {name: await make(front) for name, make in MAKERS.items()}
    absent = []
    for route in routes_of(front.app):
        params = set(route.param_convertors) - SHARED
        if scope_of(route.dependant) is not Scope.OWNER or not params or route.methods != {"GET"}:
            continue
        answer = await ask(front.ada, route, place(route, **things))
        if answer.status_code != 200:
            absent.append((route.path, answer.status_code, answer.text))

    assert absent == []


async def test_nobody_is_told_what_is_wrong_with_a_body_before_he_is_known(front: Front) -> None:
    """Strangers, and keys of another scope, are counted and refused; not a byte of their bodies is parsed."""
    callers = {Scope.OWNER: front.worker, Scope.ADMIN: front.ada, Scope.WORKER: front.ada}
    wrong: list[tuple[object, ...]] = []
    count = 0
    for route in routes_of(front.app):
        scope = scope_of(route.dependant)
        if scope is None or route.body_field is None:
            continue
        count += 1
        method, where = min(route.methods or ()), place(route)
        unlimited(front)
        for broken in (b"{", b"\xff", b'{"what": 1}', b"[" * 5_000):
            stranger = await front.nobody.request(method, where, content=broken, headers=JSON)
            other = await callers[scope].request(method, where, content=broken, headers=JSON)
            if (stranger.status_code, other.status_code) != (401, 403):
                wrong.append((route.path, broken[:20], stranger.status_code, other.status_code))
        front.house.rates = RateLimits(front.parts.world.mono, per_key=1, per_stranger=1, per_worker=1)
        asked = [(await front.nobody.request(method, where, content=b"{", headers=JSON)).status_code for _ in range(2)]
        if asked != [401, 429]:
            wrong.append((route.path, "rate", *asked))

    assert count > 15
    assert wrong == []


async def test_a_body_that_cannot_be_parsed_counts_once_against_the_key(front: Front) -> None:
    front.house.rates = RateLimits(front.parts.world.mono, per_key=2, per_stranger=1)

    answers = [await front.ada.post("/api/v1/jobs", content=b"{", headers=JSON) for _ in range(3)]

    assert [answer.status_code for answer in answers] == [422, 422, 429]


async def test_head_is_answered_wherever_get_is_with_the_same_headers_and_no_body(front: Front) -> None:
    await front.flow()
    unlimited(front)
    things = {name: await make(front) for name, make in MAKERS.items()}
    clients = {None: front.admin, Scope.OWNER: front.ada, Scope.ADMIN: front.admin, Scope.WORKER: front.worker}
    wrong, count = [], 0
    for route in routes_of(front.app):
        client = clients[scope_of(route.dependant)]
        if "GET" not in (route.methods or ()) or "uploads/{upload_id}" in route.path:  # there, HEAD is tus
            continue
        where = place(route, **things)
        head = await client.head(where)
        count += 1
        if route.path in ENDLESS:
            assert (head.status_code, head.content) == (200, b"")
            continue
        got = await client.get(where)
        unlike = [name for name in SAME if head.headers.get(name) != got.headers.get(name)]
        if head.status_code != got.status_code or head.content or (got.is_success and unlike):
            wrong.append((route.path, got.status_code, head.status_code, len(head.content), unlike))

    assert count > 40
    assert wrong == []
