"""Which addresses may be asked on somebody else's word.

Whoever submits a job or a webhook chooses an address, and we ask from inside the operator's network: without a check
we would fetch the cloud's own secrets or press a neighbour's buttons. So a name is resolved once, every address that
it has is checked, and the connection goes to a checked address: a second answer of the name server changes nothing.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable, Iterable, Sequence
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address, ip_network

Address = IPv4Address | IPv6Address
Resolve = Callable[[str, int], Awaitable[Sequence[str]]]

NAT64 = IPv6Network("64:ff9b::/96")


async def resolve(host: str, port: int) -> list[str]:
    """The addresses of a name, as this machine knows them."""
    found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(place[0]) for *_, place in found))


def first_inside(host: str, found: Iterable[str], allowed: Iterable[str]) -> Address | None:
    """The first address of this host that is not on the public internet, nor at an allowed place; None: all are fine.

    `allowed` are hosts, addresses and networks of the operator's own.
    """
    places = tuple(allowed)
    if any(_names(place, host) for place in places):
        return None
    for address in map(ip_address, found):
        if not is_public(address) and not any(_holds(place, _plain(address)) for place in places):
            return address
    return None


def written_out(host: str) -> Address | None:
    """The address that a host is, if it is one and not a name."""
    try:
        return ip_address(host.strip("[]"))
    except ValueError:
        return None


def is_public(address: Address) -> bool:
    """Whether anybody on the internet could ask this address, too."""
    plain = _plain(address)
    return plain.is_global and not plain.is_multicast and not plain.is_reserved and not _is_teredo(plain)


def _plain(address: Address) -> Address:
    """The IPv4 address that an IPv6 address stands for, if it is of such a kind."""
    if isinstance(address, IPv4Address):
        return address
    within = IPv4Address(int(address) & 0xFFFF_FFFF) if address in NAT64 else None
    return address.ipv4_mapped or address.sixtofour or within or address


def _is_teredo(address: Address) -> bool:
    return isinstance(address, IPv6Address) and address.teredo is not None


def _names(place: str, host: str) -> bool:
    return place.lower().rstrip(".") == host.lower().rstrip(".")


def _holds(place: str, address: Address) -> bool:
    try:
        return address in ip_network(place, strict=False)
    except ValueError:
        return False
