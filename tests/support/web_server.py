"""A real web server for tests, on the loopback: what it answers is said path by path."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

Answer = Callable[["Request"], None]


class Request(BaseHTTPRequestHandler):
    """One request, with what a page needs in order to answer it."""

    protocol_version = "HTTP/1.1"
    server: _Server

    def do_GET(self) -> None:
        self.server.site.asked.append((self.path, dict(self.headers)))
        self.server.site.pages[self.path.partition("?")[0]](self)

    def log_message(self, *args: object) -> None:
        """Nothing on the console."""

    @property
    def first(self) -> int:
        """The first byte that is asked for."""
        return int(self.headers.get("Range", "bytes=0-").removeprefix("bytes=").removesuffix("-"))

    def say(self, status: int, body: bytes = b"", **headers: str) -> None:
        self.head(status, len(body), **headers)
        self.wfile.write(body)

    def head(self, status: int, length: int | None, **headers: str) -> None:
        self.send_response(status)
        if length is not None:
            self.send_header("Content-Length", str(length))
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()

    def hang_up(self) -> None:
        self.wfile.flush()
        self.close_connection = True


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    site: Site


@dataclass
class Site:
    port: int
    pages: dict[str, Answer] = field(default_factory=dict)
    asked: list[tuple[str, dict[str, str]]] = field(default_factory=list)

    def url(self, path: str, host: str = "127.0.0.1") -> str:
        return f"http://{host}:{self.port}{path}"


@contextmanager
def serve() -> Iterator[Site]:
    server = _Server(("127.0.0.1", 0), Request)
    server.site = Site(server.server_address[1])
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield server.site
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
