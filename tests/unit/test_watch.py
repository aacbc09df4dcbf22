"""Requests as observers see them: streams while they are open, ends of all kinds."""

import io
import logging
from typing import Any

import pytest
from prometheus_client import CollectorRegistry
from starlette.types import Message, Receive, Scope, Send

from telecine.api.http.request_id import RequestIdMiddleware, RequestInFlight
from telecine.observe.logs import LogFormatter
from telecine.observe.requests import AccessLines, RequestMetrics, is_chatter


async def nothing() -> Message:
    return {"type": "http.disconnect"}


class Notes:
    """Notes what it hears."""

    def __init__(self) -> None:
        self.heard: list[tuple[str, int]] = []

    def came(self, visit: RequestInFlight) -> None:
        self.heard.append(("came", visit.status))

    def answered(self, visit: RequestInFlight) -> None:
        self.heard.append(("answered", visit.status))

    def over(self, visit: RequestInFlight) -> None:
        self.heard.append(("over", visit.status))


def run(app: Any, *watchers: Any, kind: str = "http") -> None:
    """One request to it; it never waits, so no loop is needed."""

    async def send(message: Message) -> None:
        return None

    watch = RequestIdMiddleware(app, watchers, lambda: 0.0, lambda: "r1")
    request = watch({"type": kind, "method": "GET", "path": "/", "headers": []}, nothing, send)
    with pytest.raises(StopIteration):
        request.send(None)


@pytest.mark.parametrize("kind", ["http", "websocket"])
def test_a_stream_is_counted_while_it_is_open(kind: str) -> None:
    registry = CollectorRegistry()
    seen = []

    async def stream(scope: Scope, receive: Receive, send: Send) -> None:
        if kind == "http":
            head = [(b"content-type", b"text/event-stream; charset=utf-8")]
            await send({"type": "http.response.start", "status": 200, "headers": head})
        else:
            await send({"type": "websocket.accept"})
        seen.append(registry.get_sample_value("telecine_event_streams", {"kind": kind}))

    run(stream, RequestMetrics(registry), kind=kind)

    seen.append(registry.get_sample_value("telecine_event_streams", {"kind": kind}))
    assert seen == [1.0, 0.0]
    assert registry.get_sample_value("telecine_http_request_seconds_count", {"route": "(none)", "method": "GET"}) == 0.0


def test_a_request_that_nobody_answered_is_an_error_of_ours() -> None:
    notes = Notes()

    async def broken(scope: Scope, receive: Receive, send: Send) -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        run(broken, notes)

    assert notes.heard == [("came", 0), ("over", 500)]


def test_a_refused_socket_is_no_stream() -> None:
    notes = Notes()

    async def refuse(scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "websocket.close", "code": 1008})

    run(refuse, notes, kind="websocket")

    assert notes.heard == [("came", 0), ("over", 403)]


@pytest.mark.parametrize(
    ("method", "route", "status", "is_one"),
    [
        ("GET", "/media/v/{video}/s/{piece}", 206, True),
        ("HEAD", "/media/v/{video}/master.m3u8", 200, True),
        ("GET", "/media/v/{video}/s/{piece}", 404, False),
        ("GET", "/api/worker/source/{task}/{token}/bytes", 206, True),
        ("PUT", "/api/worker/artifacts/{task}/{token}/{name}", 200, True),
        ("PUT", "/api/worker/artifacts/{task}/{token}/{name}", 507, False),
        ("POST", "/api/worker/claim", 200, True),
        ("POST", "/api/worker/settle", 200, True),
        ("POST", "/api/worker/keep", 204, True),
        ("POST", "/api/worker/enlist", 201, False),
        ("POST", "/api/worker/retire", 204, False),
        ("POST", "/api/worker/heartbeat", 200, True),
        ("POST", "/api/worker/heartbeat", 410, False),
        ("GET", "/api/v1/jobs", 200, False),
    ],
)
def test_reading_bytes_and_beating_is_chatter_while_it_goes_well(
    method: str, route: str, status: int, is_one: bool
) -> None:
    visit = RequestInFlight("r1", "http", method, [], route=route, status=status)

    assert is_chatter(visit) is is_one


def test_a_line_for_people_says_things_once() -> None:
    visit = RequestInFlight("r1", "http", "GET", [], route="/api/v1/jobs/{job_id}", status=200, key_id="k")
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(LogFormatter("text"))
    log = logging.getLogger("telecine.access")
    log.addHandler(handler)
    level = log.level
    log.setLevel(logging.INFO)

    AccessLines().over(visit)
    log.removeHandler(handler)
    log.setLevel(level)

    assert stream.getvalue().partition("INFO")[2].strip() == "GET /api/v1/jobs/{job_id} 200 0.0 ms key=k"
