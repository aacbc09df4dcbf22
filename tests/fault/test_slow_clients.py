"""Clients that connect and do nothing, or send and read slowly: everybody else is served all the same."""

import json
import os
import re
import resource
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from statistics import median

import httpx
import pytest
from websockets.sync.client import connect

from tests.e2e.cli import Shell, ended, first_object, until
from tests.support.process_pool import Actor

BOUND = 100
SECONDS = 2
SLOW = {
    "TELECINE_MAX_CONNECTIONS": str(BOUND),
    "TELECINE_HEADER_TIMEOUT_SECONDS": str(SECONDS),
    "TELECINE_BODY_TIMEOUT_SECONDS": str(SECONDS),
    "TELECINE_MAX_STREAMS_PER_KEY": "1000",
}
HEAD = b"GET /health HTTP/1.1\r\nHost: x\r\nX-Slow: "


class Served:
    def __init__(self, shell: Shell, process: Actor, address: str) -> None:
        self.process, self.address = process, address
        self.port = int(address.rsplit(":", 1)[1])
        self.key = shell.quick("keys", "create", "--owner", "ada").out.strip()
        self.headers = {"Authorization": f"Bearer {self.key}"}

    def connect(self, sent: bytes = b"") -> socket.socket:
        made = socket.create_connection(("127.0.0.1", self.port), timeout=30)
        made.sendall(sent)
        return made

    def get(self, path: str) -> httpx.Response:
        return httpx.get(f"{self.address}{path}", headers=self.headers, timeout=5)

    def descriptors(self) -> int:
        return len(self._open_files())

    def sockets(self) -> int:
        return sum(name.startswith("socket:") for name in self._open_files())

    def _open_files(self) -> list[str]:
        folder, found = Path(f"/proc/{self.process.pid}/fd"), []
        for one in folder.iterdir():
            with suppress(FileNotFoundError):  # closed meanwhile
                found.append(os.readlink(one))
        return found


@pytest.fixture
def served(tmp_path: Path, sqlite_url: str) -> Iterator[Served]:
    shell = Shell.prepare(tmp_path, sqlite_url)
    with serving(shell) as own:
        yield own


@contextmanager
def serving(shell: Shell) -> Iterator[Served]:
    out, log = shell.folder / "server.out", shell.folder / "server.log"
    process = shell.start("serve", "--port", "0", "--json", out=out, log=log, environ=SLOW)
    with ended(process):
        yield Served(shell, process, first_object(out, process)["address"])


@contextmanager
def many_descriptors(count: int) -> Iterator[None]:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, count), hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_idle_and_half_open_connections_keep_nobody_from_being_served(served: Served) -> None:
    at_rest = served.descriptors()

    with many_descriptors(2_000), ExitStack() as held:
        took = []
        for number in range(1_200):
            held.enter_context(served.connect(HEAD if number % 2 else b""))
            if number % 100 == 99:
                began = time.monotonic()
                with served.connect(b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n") as asked:
                    assert asked.recv(4_096).startswith(b"HTTP/1.1 200 ")
                took.append(time.monotonic() - began)
                assert served.get("/api/v1/me").json()["owner"] == "ada"
        most = served.descriptors()
        until(lambda: served.descriptors() <= at_rest + 2, 15)

    assert median(took) < 1.0, took
    assert most <= at_rest + BOUND + 4


def test_a_head_that_comes_byte_by_byte_is_given_up(served: Served) -> None:
    with served.connect(HEAD) as client:
        began = time.monotonic()

        answer = dribble(client, lambda: time.monotonic() - began < 15)

    assert answer.startswith(b"HTTP/1.1 408 ")
    assert json.loads(answer.partition(b"\r\n\r\n")[2])["code"] == "request_timeout"
    assert time.monotonic() - began < SECONDS + 5


def test_empty_lines_between_requests_keep_no_connection(served: Served) -> None:
    with served.connect(b"\r\n") as client:
        began = time.monotonic()

        dribble(client, lambda: time.monotonic() - began < 15, b"\r\n")

    assert time.monotonic() - began < SECONDS + 5


def test_an_endless_head_is_refused(served: Served) -> None:
    with served.connect(HEAD) as client:
        answer = dribble(client, lambda: True, b"x" * 20_000)

    assert answer.startswith(b"HTTP/1.1 431 ")


def test_a_body_that_stops_is_given_up_and_a_slow_one_that_goes_on_is_not(served: Served) -> None:
    put = b"PUT /api/v1/uploads/a.mp4 HTTP/1.1\r\nHost: x\r\nContent-Type: video/mp4\r\n"
    key = f"Authorization: Bearer {served.key}\r\n".encode()
    began = time.monotonic()
    with (
        served.connect(b"POST /api/v1/jobs HTTP/1.1\r\nHost: x\r\n" + key + b"Content-Length: 90\r\n\r\n{") as stopped,
        served.connect(put + key + b"Content-Length: 8000\r\n\r\n") as slow,
    ):
        for _ in range(16):
            slow.sendall(bytes(500))
            time.sleep(0.3)

        refused, took = stopped.recv(4_096), time.monotonic() - began
        taken = slow.recv(4_096)

    assert refused.startswith(b"HTTP/1.1 408 ")
    assert not re.match(rb"HTTP/1.1 408", taken), taken
    assert took > SECONDS


def test_a_refused_upload_that_goes_on_does_not_keep_its_connection(served: Served) -> None:
    head = b"PUT /api/v1/uploads/a.mp4 HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\n"
    with served.connect(head) as client:
        began = time.monotonic()
        answer = dribble(client, lambda: time.monotonic() - began < 20)

    assert answer.startswith(b"HTTP/1.1 401 ")
    assert time.monotonic() - began < 10


def test_when_all_connections_are_busy_health_has_a_reserve_and_the_rest_hears_why(served: Served) -> None:
    stream = f"GET /api/v1/events HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {served.key}\r\n\r\n".encode()
    with ExitStack() as held:
        for one in [held.enter_context(served.connect(stream)) for _ in range(BOUND)]:
            assert one.recv(12) == b"HTTP/1.1 200"

        health, other = served.get("/health"), served.get("/api/v1/me")
        for _ in range(100):  # the reserve is for who asks, not for who waits
            held.enter_context(served.connect())
        still = served.get("/health")

    assert (health.status_code, still.status_code) == (200, 200)
    assert (other.status_code, other.json()["code"], other.headers["Retry-After"]) == (503, "too_many", "5")
    assert other.json()["detail"] == f"the server has {BOUND} connections open already: try again in a moment"
    assert until(lambda: served.get("/api/v1/me").status_code == 200)


def test_a_websocket_outlives_all_time_limits_and_is_counted_until_its_end(served: Served) -> None:
    at_rest = served.sockets()
    address = served.address.replace("http", "ws") + "/api/v1/ws"

    with connect(address, additional_headers=served.headers) as client:
        client.recv(timeout=5)
        time.sleep(SECONDS + 6)
        client.send('{"after": "0", "snapshot": true}')
        told = json.loads(client.recv(timeout=5))

    assert told["type"] == "snapshot"
    until(lambda: served.sockets() <= at_rest)


def test_an_answer_that_nobody_reads_is_given_up(served: Served) -> None:
    at_rest = served.sockets()
    with socket.socket() as client:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2_048)
        client.connect(("127.0.0.1", served.port))
        client.sendall(b"GET /openapi.json HTTP/1.1\r\nHost: x\r\n\r\n" * 200)

        until(lambda: served.sockets() > at_rest)
        until(lambda: served.sockets() <= at_rest, 20)


def test_the_server_opens_as_many_files_as_it_may(served: Served) -> None:
    limits = Path(f"/proc/{served.process.pid}/limits").read_text()

    found = re.search(r"Max open files +(\d+) +(\d+)", limits)

    assert found is not None
    assert int(found[1]) == min(int(found[2]), 65_536)


def dribble(client: socket.socket, goes_on: Callable[[], bool], some: bytes = b"x") -> bytes:
    """Send until the server has had enough; what it says."""
    found = b""
    client.settimeout(0.1)
    try:
        while goes_on():
            client.sendall(some)
            try:
                heard = client.recv(65_536)
            except TimeoutError:
                continue
            found += heard
            if not heard:
                break
    except (BrokenPipeError, ConnectionResetError):
        pass
    return found
