"""Which places may be asked for a source.

Whoever submits a job chooses the address, and the worker asks from inside the operator's network: without a check it
would fetch the cloud's own secrets or a neighbour's console. So a name is resolved once, every address that it has is
checked, and the connection goes to a checked address: a second answer of the name server changes nothing.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Any

from telecine.errors import MediaRefused
from telecine.media.inputs.saving import Broken

Address = IPv4Address | IPv6Address
Resolve = Callable[[str, int], Awaitable[Sequence[str]]]

NAT64 = IPv6Network("64:ff9b::/96")


async def resolve(host: str, port: int) -> list[str]:
    """The addresses of a name, as this machine knows them."""
    found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(place[0]) for *_, place in found))


@dataclass(frozen=True, slots=True, kw_only=True)
class Gate:
    """What the settings allow, and how patient we are."""

    most_bytes: int = 200 << 30
    private: tuple[str, ...] = ()  # hosts, addresses and networks of one's own that may be asked
    bucket: Callable[[str], Any] | None = None  # `s3://name` to an object store, as artifacts are opened
    connect_seconds: float = 10.0
    read_seconds: float = 30.0
    pause_seconds: float = 0.5  # before a broken download goes on; doubled each time that brought nothing
    resolve: Resolve = resolve

    async def addresses(self, host: str, port: int) -> list[str]:
        """Where to connect to for this host; refused if any of its addresses may not be asked."""
        try:
            found = await asyncio.wait_for(self.resolve(host, port), self.connect_seconds)
        except (OSError, UnicodeError, TimeoutError) as error:
            raise Broken(f"the host {host} is not known ({str(error) or 'no answer'})") from error
        for text in found:
            address = ip_address(text)
            if not is_public(address) and not self._allows(host, address):
                raise MediaRefused(
                    f"the source's host {host} is at {address}, which is not on the public internet; "
                    "list it in allow_private_sources if jobs may read there",
                    code="source_private",
                )
        return list(found)

    def _allows(self, host: str, address: Address) -> bool:
        return any(_names(place, host) or _holds(place, _plain(address)) for place in self.private)


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
