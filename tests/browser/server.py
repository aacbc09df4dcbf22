"""A small web server for a folder: ranges, CORS, the right types; on loopback only, and it remembers who asked what."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import unquote, urlsplit

TYPES = {
    ".m3u8": "application/vnd.apple.mpegurl",
    ".m4s": "video/iso.segment",
    ".mp4": "video/mp4",
    ".vtt": "text/vtt",
    ".jpg": "image/jpeg",
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
}


@contextmanager
def served(
    folder: Path, extras: Mapping[str, Path] | None = None, asked: Callable[[str], None] | None = None
) -> Iterator[str]:
    """Serve the folder, and single files under paths of their own; `asked` is told each path before it is answered."""
    handler = partial(_Answer, folder.resolve(), dict(extras or {}), asked or (lambda path: None))
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


class _Answer(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def __init__(
        self, folder: Path, extras: dict[str, Path], asked: Callable[[str], None], *connection: object
    ) -> None:
        self._folder, self._extras, self._asked = folder, extras, asked
        super().__init__(*connection)  # type: ignore[arg-type]

    def do_GET(self) -> None:
        path = unquote(urlsplit(self.path).path)
        self._asked(path)
        file = self._extras.get(path, self._folder / path.lstrip("/"))
        inside = path in self._extras or file.resolve().is_relative_to(self._folder)
        if not inside or not file.is_file():
            self._answer(HTTPStatus.NOT_FOUND, b"", "text/plain")
            return
        data = file.read_bytes()
        kind = TYPES.get(file.suffix, "application/octet-stream")
        wanted = re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("Range", ""))
        if wanted is None:
            self._answer(HTTPStatus.OK, data, kind)
            return
        first, last = int(wanted[1]), min(int(wanted[2] or len(data) - 1), len(data) - 1)
        if first > last:
            self._answer(HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE, b"", kind, f"bytes */{len(data)}")
            return
        part = f"bytes {first}-{last}/{len(data)}"
        self._answer(HTTPStatus.PARTIAL_CONTENT, data[first : last + 1], kind, part)

    def do_HEAD(self) -> None:
        self.do_GET()

    def do_OPTIONS(self) -> None:
        self._answer(HTTPStatus.NO_CONTENT, b"", "text/plain")

    def _answer(self, status: HTTPStatus, data: bytes, kind: str, part: str | None = None) -> None:
        self.send_response(status)
        for name, value in (
            ("Content-Type", kind),
            ("Content-Length", str(len(data))),
            ("Content-Range", part),
            ("Accept-Ranges", "bytes"),
            ("Cache-Control", "no-cache"),
            ("Access-Control-Allow-Origin", "*"),
            ("Access-Control-Allow-Headers", "Range"),
            ("Access-Control-Expose-Headers", "Content-Range, Content-Length"),
        ):
            if value is not None:
                self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)

    def log_message(self, format: str, *args: object) -> None:
        pass
