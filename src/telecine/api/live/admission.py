"""Who may listen: a key in the header, the cookie of the page, or a ticket; and from which pages.

A browser's EventSource and WebSocket send no headers of ours. On the page of this server its cookie is enough; anybody
else asks for a ticket first, with a key. A handshake from another page is refused, since a browser would send
the cookie along.
"""

from __future__ import annotations

from typing import Annotated
from urllib.parse import urlsplit

from fastapi import Depends
from starlette.requests import HTTPConnection

from telecine.api.http.auth import RequireScope, address_of
from telecine.api.http.context import ServerContext, house_of
from telecine.engine.accounts.keys import Caller, Scope
from telecine.errors import KeyInvalid, NotAllowed
from telecine.settings import Settings


class RequireListener(RequireScope):
    """An owner or an administrator, also by a ticket, from a page that may ask."""

    def __init__(self) -> None:
        super().__init__(Scope.OWNER)

    async def __call__(self, connection: HTTPConnection) -> Caller:
        ticket = connection.query_params.get("ticket")
        caller = await super().__call__(connection) if ticket is None else await _by_ticket(connection, ticket)
        check_origin(house_of(connection), connection)
        return caller


async def _by_ticket(connection: HTTPConnection, ticket: str) -> Caller:
    house = house_of(connection)
    try:
        caller = await house.keys.spend_ticket(ticket)
    except KeyInvalid:
        house.rates.stranger(address_of(connection))
        raise
    house.rates.key(caller.key_id)
    return caller


def check_origin(house: ServerContext, connection: HTTPConnection) -> None:
    origin = connection.headers.get("origin")
    if not may_listen(origin, connection.headers.get("host", ""), house.settings):
        raise NotAllowed("this page may not listen here: the setting allowed_origins names those that may")


def may_listen(origin: str | None, host: str, settings: Settings) -> bool:
    """Programs send no origin; a browser sends the one of its page, and cannot be made to send another."""
    if origin is None:
        return True
    page = _plain(origin)
    parts = urlsplit(page)
    if parts.scheme not in ("http", "https") or not parts.netloc:
        return False
    own = parts.netloc == host.lower() or (settings.public_url is not None and page == _origin_of(settings.public_url))
    return own or page in {_plain(one) for one in settings.allowed_origins}


def _origin_of(url: str) -> str:
    parts = urlsplit(url.lower())
    return f"{parts.scheme}://{parts.netloc}"


def _plain(origin: str) -> str:
    return origin.strip().lower().rstrip("/")


Listener = Annotated[Caller, Depends(RequireListener())]
