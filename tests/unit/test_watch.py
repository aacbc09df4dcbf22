"""Requests as observers see them: streams while they are open, ends of all kinds."""

from typing import Any

import pytest
from prometheus_client import CollectorRegistry
from starlette.types import Message, Receive, Scope, Send

from telecine.api.watch import Visit, Watch
from telecine.observe.requests import RequestMetrics


async def nothing() -> Message:
    return {"type": "http.disconnect"}


class Notes:
    """Notes what it hears."""

    def __init__(self) -> None:
        self.heard: list[tuple[str, int]] = []

    def came(self, visit: Visit) -> None:
        self.heard.append(("came", visit.status))

    def answered(self, visit: Visit) -> None:
        self.heard.append(("answered", visit.status))

    def over(self, visit: Visit) -> None:
        self.heard.append(("over", visit.status))


def run(app: Any, *watchers: Any, kind: str = "http") -> None:
    """One request to it; it never waits, so no loop is needed."""

    async def send(message: Message) -> None:
        return None

    watch = Watch(app, watchers, lambda: 0.0, lambda: "r1")
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
