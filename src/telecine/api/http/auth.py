"""Who asks, and whether that is enough: every route declares one of these.

    async def cancel(who: Owner, …)          a key of an owner, or of an administrator
    async def register(who: Admin, …)        an administrator's
    async def claim(who: Worker, …)          a worker's
    Depends(open_to_all)                     nobody's: the few routes that need no key say so, too

A key comes as `Authorization: Bearer tcn_…`. A browser that was logged in by a link sends a cookie instead; since
other pages can make it do so, whatever changes something then needs the header `X-Telecine`, which they cannot send.
"""

from __future__ import annotations

from typing import Annotated

from fastapi import Depends
from fastapi.dependencies.models import Dependant
from starlette.requests import HTTPConnection

from telecine.api.http.context import ServerContext, house_of
from telecine.engine.accounts.keys import Caller, RowOf, Scope
from telecine.errors import KeyInvalid, NotAllowed, NotFound

COOKIE = "telecine_session"
HEADER = "X-Telecine"
SAFE = ("GET", "HEAD", "OPTIONS")

_ENOUGH = {
    Scope.ADMIN: {Scope.ADMIN},
    Scope.OWNER: {Scope.OWNER, Scope.ADMIN},
    Scope.WORKER: {Scope.WORKER},
}


class RequireScope:
    """A dependency that lets in who has this scope, and tells whose key it is."""

    def __init__(self, scope: Scope) -> None:
        self.scope = scope

    def admit(self, caller: Caller) -> Caller:
        if caller.scope not in _ENOUGH[self.scope]:
            raise NotAllowed(f"this needs the key of {_an(self.scope)}; yours is of {_an(caller.scope)}")
        return caller

    async def __call__(self, connection: HTTPConnection) -> Caller:
        known: Caller | None = getattr(connection.state, "caller", None)
        if known is None:
            known = connection.state.caller = await caller_of(connection)
        return self.admit(known)


def needs_of(dependant: Dependant) -> RequireScope | None:
    """What a route declares; None: it needs no key."""
    for inner in dependant.dependencies:
        call: object = inner.call
        if isinstance(call, RequireScope):
            return call
        if (found := needs_of(inner)) is not None:
            return found
    return None


async def open_to_all() -> None:
    """For routes that need no key."""


async def caller_of(connection: HTTPConnection, row_of: RowOf | None = None) -> Caller:
    """Whose key it is; `KeyInvalid` without one. `row_of` reads its row, where more is read along with it."""
    house = house_of(connection)
    try:
        caller = await house.keys.find(_key_in(connection), row_of)
    except (KeyInvalid, NotAllowed):
        house.rates.stranger(address_of(connection))
        raise
    connection.state.key_id = caller.key_id  # for the access line
    (house.rates.worker if caller.scope is Scope.WORKER else house.rates.key)(caller.key_id)
    return caller


async def caller_or_nobody(connection: HTTPConnection) -> Caller | None:
    """For routes that show more to whoever has a key."""
    return await caller_of(connection) if _has_key(connection) else None


def address_of(connection: HTTPConnection) -> str:
    return connection.client.host if connection.client else "unknown"


def _has_key(connection: HTTPConnection) -> bool:
    return "authorization" in connection.headers or COOKIE in connection.cookies


def _key_in(connection: HTTPConnection) -> str:
    word, _, text = connection.headers.get("authorization", "").partition(" ")
    if word.lower() == "bearer" and text:
        return text.strip()
    if (session := connection.cookies.get(COOKIE)) is not None:
        if connection.scope.get("method", "GET") not in SAFE and HEADER not in connection.headers:
            raise NotAllowed(f"a browser's request that changes something needs the header {HEADER}: 1")
        return session
    raise KeyInvalid("this needs a key: send it as `Authorization: Bearer tcn_…`")


def _an(scope: Scope) -> str:
    return {"admin": "an administrator", "owner": "an owner", "worker": "a worker"}[scope]


def visible(caller: Caller, owner: str, what: str) -> None:
    """What belongs to somebody else is as absent as what does not exist."""
    if not caller.may_see(owner):
        raise NotFound(what)


Admin = Annotated[Caller, Depends(RequireScope(Scope.ADMIN))]
Owner = Annotated[Caller, Depends(RequireScope(Scope.OWNER))]
Worker = Annotated[Caller, Depends(RequireScope(Scope.WORKER))]
Anybody = Annotated[None, Depends(open_to_all)]

__all__ = [
    "Admin",
    "Anybody",
    "Owner",
    "ServerContext",
    "Worker",
    "address_of",
    "caller_of",
    "caller_or_nobody",
    "visible",
]
