"""Bounds on connections: how many in total and from one address, and how long a request may take to arrive.

uvicorn accepts every connection and waits for its request without end, so a client that only connects uses up the
descriptors of the server. Here a connection without a request in progress is *waiting*. A new connection above a bound
takes the place of the one that has waited longest. Where none waits, it gets one of a few reserve places, which serve
health checks and refuse the rest.
"""

from __future__ import annotations

import asyncio
import logging
import resource
from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import partial
from ipaddress import IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Any, Final, Protocol

log = logging.getLogger(__name__)

MAX_DESCRIPTORS: Final = 65_536
# Databases, log files, children; each connection may need one more for the file that it reads or writes.
OTHER_DESCRIPTORS: Final = 256
RESERVE: Final = 32
MIN_BODY_BYTES: Final = 1_024
CLOSE_SECONDS: Final = 5.0
LOG_SECONDS: Final = 60.0
LOOPBACK: Final = (ip_network("127.0.0.0/8"), ip_network("::1/128"))


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionBounds:
    """`exempt`: addresses whose number of connections is not bound, such as those of proxies."""

    total: int
    per_address: int
    header_seconds: float = 20.0
    body_seconds: float = 60.0
    idle_seconds: float = 30.0
    exempt: tuple[IPv4Network | IPv6Network, ...] = LOOPBACK


class ServedProtocol(Protocol):
    """A protocol of uvicorn, as the bounds see it."""

    def is_late(self, now: float) -> bool:
        """Whether the client has been too slow; then the protocol has closed its connection."""
        ...


@dataclass(slots=True, eq=False)
class ClientConnection:
    transport: asyncio.Transport
    address: str
    served: ServedProtocol
    # Only health checks are answered, for this reason.
    refusal: str | None = None
    closing_since: float | None = None
    unsent: int = 0
    unsent_since: float = 0.0


@dataclass(slots=True)
class _Address:
    count: int = 0
    waiting: OrderedDict[ClientConnection, None] = field(default_factory=OrderedDict)


class ConnectionLimits:
    """All connections of one server, by transport: a protocol may change, as for WebSockets."""

    def __init__(self, bounds: ConnectionBounds) -> None:
        self.bounds = bounds
        self._all: dict[asyncio.BaseTransport, ClientConnection] = {}
        self._addresses: dict[str, _Address] = {}
        self._waiting: OrderedDict[ClientConnection, None] = OrderedDict()
        self._reserve: OrderedDict[ClientConnection, None] = OrderedDict()
        self._dropped = 0
        self._logged_at = float("-inf")

    def __len__(self) -> int:
        return len(self._all)

    @property
    def waiting(self) -> int:
        return len(self._waiting)

    def add(self, transport: asyncio.Transport, host: str | None, served: ServedProtocol) -> ClientConnection:
        """A new connection; another one may be closed in its favour."""
        address = counted_as(host, self.bounds.exempt)
        own = self._addresses.setdefault(address, _Address())
        is_above_own = bool(address) and own.count >= self.bounds.per_address
        is_above_all = len(self._all) - len(self._reserve) >= self.bounds.total
        made = ClientConnection(transport, address, served)
        if is_above_own and not self._drop_oldest(own.waiting):
            made.refusal = f"this address has {self.bounds.per_address} connections open already"
        elif is_above_all and not is_above_own and not self._drop_oldest(self._waiting):
            made.refusal = f"the server has {self.bounds.total} connections open already"
        if made.refusal is not None:
            self._dropped += 1
            if len(self._reserve) >= RESERVE:
                self._drop_oldest(self._reserve)
            self._reserve[made] = None
        self._all[transport] = made
        own.count += 1
        self.wait(made)
        return made

    def wait(self, connection: ClientConnection) -> None:
        """It has no request in progress from now on."""
        if connection.refusal is None and connection.transport in self._all:
            self._waiting[connection] = None
            self._addresses[connection.address].waiting[connection] = None

    def work(self, connection: ClientConnection) -> None:
        """A whole request head has arrived."""
        self._waiting.pop(connection, None)
        if (own := self._addresses.get(connection.address)) is not None:
            own.waiting.pop(connection, None)

    def remove(self, transport: asyncio.BaseTransport) -> None:
        connection = self._all.pop(transport, None)
        if connection is None:
            return
        self.work(connection)
        self._reserve.pop(connection, None)
        own = self._addresses[connection.address]
        own.count -= 1
        if not own.count:
            del self._addresses[connection.address]

    def look(self, now: float) -> None:
        """Once a second: close the connections of clients that are too slow."""
        for connection in list(self._all.values()):
            if connection.transport.is_closing():
                # It waits until the client has read the rest, which may be never.
                connection.closing_since = connection.closing_since or now
                if now - connection.closing_since > CLOSE_SECONDS:
                    connection.transport.abort()
            elif self._is_unread(connection, now):
                connection.transport.abort()
            else:
                connection.served.is_late(now)
        if self._dropped and now - self._logged_at > LOG_SECONDS:
            log.warning(
                "%d connections above max_connections %d or max_connections_per_address %d: closed waiting ones",
                self._dropped, self.bounds.total, self.bounds.per_address,
            )  # fmt: skip
            self._dropped, self._logged_at = 0, now

    def _is_unread(self, connection: ClientConnection, now: float) -> bool:
        """Whether the client has read nothing of its answer for too long."""
        unsent = connection.transport.get_write_buffer_size()
        if not unsent or unsent != connection.unsent:
            connection.unsent, connection.unsent_since = unsent, now
        return bool(unsent) and now - connection.unsent_since > self.bounds.body_seconds

    def _drop_oldest(self, some: OrderedDict[ClientConnection, None]) -> bool:
        if not some:
            return False
        oldest = next(iter(some))
        self._dropped += 1
        self.remove(oldest.transport)
        oldest.transport.abort()
        return True


def counted_as(host: str | None, exempt: Iterable[IPv4Network | IPv6Network]) -> str:
    """By what connections of one client are counted: an IPv4 address or an IPv6 /64; empty: they are not."""
    try:
        found = ip_address((host or "").partition("%")[0])
    except ValueError:
        return ""
    if isinstance(found, IPv6Address) and found.ipv4_mapped is not None:
        found = found.ipv4_mapped
    if any(found in network for network in exempt if network.version == found.version):
        return ""
    return str(ip_network((found, 64), strict=False)) if isinstance(found, IPv6Address) else str(found)


def raise_descriptor_limit() -> int:
    """Let this process open as many files as it may; how many that are."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = MAX_DESCRIPTORS if hard == resource.RLIM_INFINITY else min(hard, MAX_DESCRIPTORS)
    if soft != resource.RLIM_INFINITY and soft < most:
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
        soft = most
    return MAX_DESCRIPTORS if soft == resource.RLIM_INFINITY else soft


def bounds_for(
    total: int, per_address: int, descriptors: int, trusted: Iterable[str] = (), **more: Any
) -> ConnectionBounds:
    """The bounds that the settings ask for, as far as there are descriptors for them."""
    possible = max(16, (descriptors - OTHER_DESCRIPTORS) // 2)
    if possible < total:
        log.info("at most %d connections: the limit of open files is %d (max_connections is %d)",
                 possible, descriptors, total)  # fmt: skip
    total = min(total, possible)
    networks = tuple(network for text in trusted for network in _networks(text))
    return ConnectionBounds(total=total, per_address=min(per_address, total), exempt=(*LOOPBACK, *networks), **more)


def _networks(text: str) -> list[IPv4Network | IPv6Network]:
    """A trusted proxy may also be named by a host name, which is no address of a connection."""
    try:
        return [ip_network(text, strict=False)]
    except ValueError:
        return []


def protocols(limits: ConnectionLimits) -> dict[str, Any]:
    """Options for uvicorn."""
    from telecine.wiring.protocols import LimitedHttp, LimitedSocket  # noqa: PLC0415 - for servers only

    return {"http": partial(LimitedHttp, limits=limits), "ws": partial(LimitedSocket, limits=limits)}
