"""The sockets that the server listens on: bound before anything else begins.

So a port that is taken is one sentence, and no duty has begun.
"""

from __future__ import annotations

import errno
import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from telecine.errors import BadSpec


@contextmanager
def bound(host: str, port: int) -> Iterator[list[socket.socket]]:
    """One socket for each address of the host. They do not listen yet: nobody shall wait for a server that begins."""
    with ExitStack() as open_now:
        try:
            found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
            addresses = dict.fromkeys((family, address) for family, _, _, _, address in found)
            sockets: list[socket.socket] = []
            for family, (where, _, *rest) in addresses:
                # Any port, but the same for all addresses.
                chosen = port or (sockets[0].getsockname()[1] if sockets else 0)
                sockets.append(_bind(open_now, family, (where, chosen, *rest)))
        except (OSError, UnicodeError) as error:
            raise unbindable(host, port, error) from error
        yield sockets


def url_of(host: str, port: int) -> str:
    return f"http://{f'[{host}]' if ':' in host else host}:{port}"


def reachable(host: str, port: int) -> str:
    """An address for a browser on this machine: nobody can open the one that means all of them."""
    return url_of({"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host), port)


def unbindable(host: str, port: int, error: Exception) -> BadSpec:
    if isinstance(error, OSError) and error.errno == errno.EADDRINUSE:
        return BadSpec(f"port {port} is taken: stop what listens there, or choose another with --port")
    if isinstance(error, PermissionError):
        return BadSpec(f"port {port} is not for this user: choose one above 1023 with --port")
    why = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return BadSpec(f"cannot listen on {host} port {port} ({why}): choose an address of this machine with --host")


def _bind(open_now: ExitStack, family: int, address: tuple[object, ...]) -> socket.socket:
    one = open_now.enter_context(socket.socket(family, socket.SOCK_STREAM))
    one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    if family == socket.AF_INET6:
        one.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
    one.bind(address)
    return one
