"""A pooler that has no server: it takes connections, and says so with an error, at the login or at the first query.

`connect_to(url)` gives it one; from then on it passes everything on. In a thread of its own, so that programs can be
run meanwhile.
"""

from __future__ import annotations

import socket
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from urllib.parse import parse_qs, urlsplit

_SSL = 80877103


class EmptyPooler:
    def __init__(self, state: str, words: str, *, at_login: bool) -> None:
        self._error = f"SFATAL\0VFATAL\0C{state}\0M{words}\0\0".encode()
        self._at_login = at_login
        self._socket: str | None = None
        self._door = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._door.getsockname()[1]
        self.asked = threading.Event()  # somebody was turned away
        threading.Thread(target=self._serve, daemon=True).start()

    @property
    def url(self) -> str:
        return f"postgresql://postgres@127.0.0.1:{self.port}/postgres"

    def connect_to(self, url: str) -> None:
        asked = parse_qs(urlsplit(url).query)
        self._socket = f"{asked['host'][0]}/.s.PGSQL.5432"

    def close(self) -> None:
        self._door.close()

    def _serve(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._door.accept()
                threading.Thread(target=self._meet, args=(client,), daemon=True).start()

    def _meet(self, client: socket.socket) -> None:
        with suppress(OSError), client:
            if self._socket is None:
                self._turn_away(client)
                return
            with socket.socket(socket.AF_UNIX) as server:
                server.connect(self._socket)
                threading.Thread(target=_copy, args=(client, server), daemon=True).start()
                _copy(server, client)

    def _turn_away(self, client: socket.socket) -> None:
        while True:
            body = client.recv(struct.unpack("!I", client.recv(4))[0] - 4)
            if struct.unpack("!I", body[:4])[0] != _SSL:
                break
            client.sendall(b"N")
        if not self._at_login:
            client.sendall(b"R\0\0\0\x08\0\0\0\0" + _parameter("server_version", "18.0") + b"Z\0\0\0\x05I")
            client.recv(65_536)
        client.sendall(b"E" + struct.pack("!I", len(self._error) + 4) + self._error)
        self.asked.set()


def _parameter(name: str, value: str) -> bytes:
    body = f"{name}\0{value}\0".encode()
    return b"S" + struct.pack("!I", len(body) + 4) + body


def _copy(there: socket.socket, here: socket.socket) -> None:
    with suppress(OSError):
        while data := there.recv(65_536):
            here.sendall(data)
        here.shutdown(socket.SHUT_WR)


@contextmanager
def empty_pooler(state: str, words: str, *, at_login: bool = True) -> Iterator[EmptyPooler]:
    pooler = EmptyPooler(state, words, at_login=at_login)
    try:
        yield pooler
    finally:
        pooler.close()
