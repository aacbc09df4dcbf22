"""A real receiver of webhooks on the loopback, which behaves as it is told: well, badly, or not at all."""

from __future__ import annotations

import json
import ssl
import threading
import time
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

PATIENCE = 60.0
# Made for these tests, signed by itself, good for a hundred years and for nothing else.
CERTIFICATE = Path(__file__).parent / "certificate" / "hook.example.pem"
Manner = Callable[["Request"], None]


@dataclass(frozen=True)
class Heard:
    """One request, as it came."""

    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def id(self) -> str:
        return self.headers["webhook-id"]

    @property
    def json(self) -> Any:
        return json.loads(self.body)


class Request(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server

    def do_POST(self) -> None:
        receiver = self.server.receiver
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        headers = {name.lower(): value for name, value in self.headers.items()}
        with receiver.lock:
            receiver.heard.append(Heard(self.path, headers, body))
            turns = receiver.turns.get(self.path, [])
            manner = turns.pop(0) if turns else receiver.manners.get(self.path, fine)
        with suppress(OSError):
            manner(self)

    def log_message(self, *args: object) -> None:
        """Nothing on the console."""

    def say(self, status: int, body: bytes = b"", **headers: str) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(body)


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 64
    receiver: Receiver

    def handle_error(self, request: object, client_address: object) -> None:
        """Whoever hangs up in the middle is what we are here for."""


@dataclass
class Receiver:
    port: int
    # What each path does: first its turns, one after the other, then its manner.
    manners: dict[str, Manner] = field(default_factory=dict)
    turns: dict[str, list[Manner]] = field(default_factory=dict)
    heard: list[Heard] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)
    ended: threading.Event = field(default_factory=threading.Event)
    scheme: str = "http"

    def url(self, path: str = "/hook", host: str = "127.0.0.1") -> str:
        return f"{self.scheme}://{host}:{self.port}{path}"

    def at(self, path: str) -> list[Heard]:
        with self.lock:
            return [one for one in self.heard if one.path == path]

    def wait_for(self, count: int, path: str = "/hook") -> list[Heard]:
        """Until so many requests have come."""
        deadline = time.monotonic() + PATIENCE
        while len(found := self.at(path)) < count:
            assert time.monotonic() < deadline, f"{len(found)} of {count} requests came to {path}"
            time.sleep(0.02)
        return found


@contextmanager
def listen(*, secure: bool = False) -> Iterator[Receiver]:
    """`secure`: by TLS, with a certificate for hook.example that nobody knows but `CERTIFICATE`."""
    server = _Server(("127.0.0.1", 0), Request)
    server.receiver = Receiver(server.server_address[1], scheme="https" if secure else "http")
    if secure:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(CERTIFICATE, CERTIFICATE.with_name("key.pem"))
        server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield server.receiver
    finally:
        server.receiver.ended.set()
        server.shutdown()
        thread.join()
        server.server_close()


# -- manners -------------------------------------------------------------------------------------------


def fine(request: Request) -> None:
    request.say(204)


def broken(request: Request) -> None:
    request.say(500, b"secret stack trace")


def gone(request: Request) -> None:
    request.say(410)


def busy(request: Request) -> None:
    request.say(503, Retry_After="120")


def elsewhere(request: Request) -> None:
    request.say(302, Location=request.server.receiver.url("/other"))


def silent(request: Request) -> None:
    """Never answers."""
    request.server.receiver.ended.wait(PATIENCE)
    request.close_connection = True


def hanging_up(request: Request) -> None:
    request.close_connection = True


def rambling(request: Request) -> None:
    """Headers that never end."""
    request.wfile.write(b"HTTP/1.1 200 OK\r\n")
    without_end(request, b"X-More: and more\r\n" * 1_000)


def endless(request: Request) -> None:
    """A body that never ends."""
    request.wfile.write(b"HTTP/1.1 500 No\r\nTransfer-Encoding: chunked\r\n\r\n")
    without_end(request, b"10000\r\n" + b"x" * 0x10000 + b"\r\n")


def trickling(request: Request) -> None:
    """A byte now and then, never a whole head."""
    request.wfile.write(b"HTTP/1.1 200 OK\r\nX-Slow: ")
    while not request.server.receiver.ended.wait(0.1):
        request.wfile.write(b"x")


def bomb(request: Request) -> None:
    """Two megabytes or so that would be half a gigabyte, unpacked."""
    request.say(500, _packed_zeros(), Content_Encoding="gzip")


@cache
def _packed_zeros() -> bytes:
    packing, zeros = zlib.compressobj(1, zlib.DEFLATED, 31), bytes(8 << 20)
    return b"".join([*(packing.compress(zeros) for _ in range(64)), packing.flush()])


def noise(request: Request) -> None:
    request.wfile.write(b"\xff\x00 this is not HTTP\r\n\r\n")
    request.close_connection = True


def without_end(request: Request, block: bytes) -> None:
    while not request.server.receiver.ended.is_set():
        request.wfile.write(block)
    request.close_connection = True
