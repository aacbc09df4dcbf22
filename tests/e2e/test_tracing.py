"""Traces by a real collector: one for each job, through a worker beside the database and one behind HTTP."""

import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import httpx
import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from tests.e2e.cli import PROGRAM, Process, Shell, ended, first_object, until

FLOWS = """
from telecine import Done, Failed, Flow

pair = Flow("pair")

@pair.stage(run="inline", labels=["near"])
async def first(bench):
    return Done()

@pair.stage(needs=["first"], run="inline", labels=["far"], attempts=2, backoff=0.1)
async def second(bench):
    if bench.attempt == 1:
        return Failed("not yet")
    await bench.checkpoint("mark", 1)
    return Done()
"""
PATIENCE = 60.0


@dataclass(frozen=True)
class Span:
    name: str
    service: str
    trace: str
    id: str
    parent: str
    attributes: dict[str, Any]


class Collector:
    """An OTLP receiver on loopback."""

    def __init__(self) -> None:
        self.spans: list[Span] = []
        collector = self

        class Receiver(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                collector.take(ExportTraceServiceRequest.FromString(body))
                self.send_response(200)
                self.end_headers()

            def log_message(self, *args: object) -> None:
                return None

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Receiver)
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()

    def take(self, request: ExportTraceServiceRequest) -> None:
        for resource in request.resource_spans:
            [service] = [a.value.string_value for a in resource.resource.attributes if a.key == "service.name"]
            for scope in resource.scope_spans:
                for span in scope.spans:
                    told = {a.key: a.value.string_value or a.value.int_value for a in span.attributes}
                    ids = (span.trace_id.hex(), span.span_id.hex(), span.parent_span_id.hex())
                    self.spans.append(Span(span.name, service, *ids, told))

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


@pytest.fixture
def collector() -> Iterator[Collector]:
    made = Collector()
    yield made
    made.close()


@contextmanager
def running(shell: Shell, *command: str, **environ: str) -> Iterator[tuple[Process, Path]]:
    """A process of ours; its log; ended in order."""
    log = shell.folder / f"{command[0]}-{len(list(shell.folder.glob('*.log')))}.log"
    own = {**shell.environ, "TELECINE_LOG_LEVEL": "info", **environ}
    arguments, out = [*command, "--json"], log.with_suffix(".out")
    if "PYTHONPATH" in environ:  # which matters when an interpreter starts
        with out.open("wb") as told, log.open("wb") as said:
            process: Process = subprocess.Popen(
                [PROGRAM, *arguments], cwd=shell.folder, env=own, stdout=told, stderr=said
            )
    else:
        process = shell.start(*arguments, out=out, log=log, environ=own)
    with ended(process):
        yield process, log


def story(shell: Shell, told: Callable[[], bool] = lambda: True, **environ: str) -> tuple[str, str, dict[str, str]]:
    """A job whose first stage is done near the database and whose second one far from it; logs by process.

    All live until `told` is true: what they have to tell comes in batches.
    """
    (shell.folder / "pair.py").write_text(FLOWS)
    near = {**environ, "TELECINE_LABELS": "near", "TELECINE_SCRATCH": str(shell.folder / "near")}
    far = {**environ, "TELECINE_LABELS": "far", "TELECINE_SCRATCH": str(shell.folder / "far")}
    with running(shell, "serve", "--port", "0", "--flows", "pair.py", **environ) as (server, log):
        address = first_object(log.with_suffix(".out"), server)["address"]
        key = shell.quick("keys", "create", "--owner", "ada").out.strip()
        made = shell.quick("workers", "register", "far", "--out", "far.key")
        assert made.code == 0, made.err
        join = ("worker", "--server", address, "--key-file", "far.key", "--flows", "pair.py")
        with (
            running(shell, "worker", "--flows", "pair.py", "--name", "near", **near) as (_, near_log),
            running(shell, *join, **far) as (_, far_log),
        ):
            head = {"Authorization": f"Bearer {key}"}
            answer = httpx.post(f"{address}/api/v1/jobs", json={"flow": "pair"}, headers=head, timeout=30.0)
            assert answer.status_code == 201, answer.text
            job = str(answer.json()["id"])
            until(lambda: _is_over(address, job, head), PATIENCE)
            until(lambda: _are_counted(address), PATIENCE)
            until(told, PATIENCE)
        logs = {"server": log, "near": near_log, "far": far_log}
    return address, job, {name: path.read_text() for name, path in logs.items()}


def _is_over(address: str, job: str, head: dict[str, str]) -> bool:
    return bool(httpx.get(f"{address}/api/v1/jobs/{job}", headers=head, timeout=30.0).json()["status"] == "completed")


def _are_counted(address: str) -> bool:
    return (
        'telecine_jobs_completed_total{flow="pair",outcome="completed"} 1.0'
        in httpx.get(f"{address}/metrics", timeout=30.0).text
    )


def test_one_trace_from_submit_through_every_attempt_near_and_far(tmp_path: Path, collector: Collector) -> None:
    shell = Shell.prepare(tmp_path, f"sqlite:///{tmp_path}/telecine.db")

    def told() -> bool:
        return sum(span.name.startswith("pair/") for span in collector.spans) == 3

    _, job, logs = story(shell, told, TELECINE_TRACE_ENDPOINT=collector.url)

    [root] = [span for span in collector.spans if span.name == "job pair"]
    ours = [span for span in collector.spans if span.trace == root.trace]
    assert root.parent == ""
    assert root.attributes["telecine.job"] == int(job)
    [submit] = [span for span in ours if span.name == "submit"]
    attempts = [span for span in ours if span.name.startswith("pair/")]
    assert sorted(span.name for span in attempts) == ["pair/first", "pair/second", "pair/second"]
    assert {span.parent for span in (submit, *attempts)} == {root.id}
    assert len({span.id for span in ours}) == len(ours)
    settles = [span for span in ours if span.name == "settle"]
    assert sorted(span.parent for span in settles) == sorted(span.id for span in attempts)
    # What the far worker said while it worked is in the trace, too, as the server saw it.
    keep = [span for span in ours if span.name == "POST /api/worker/keep"]
    [last] = [span for span in attempts if span.attributes["telecine.attempt"] == 2]
    assert {(span.service, span.parent) for span in keep} == {("telecine-server", last.id)}
    assert {span.trace for span in collector.spans if span.name == "POST /api/v1/jobs"} != set()
    # And lines about an attempt name it.
    assert f'"trace": "{root.trace}"' in logs["far"]
    assert "/metrics" not in {span.attributes.get("http.route") for span in collector.spans}


def test_without_an_endpoint_nothing_is_traced_nor_even_imported(tmp_path: Path) -> None:
    shell = Shell.prepare(tmp_path, f"sqlite:///{tmp_path}/telecine.db")
    # As if the extra were not installed: who imports it, fails.
    (tmp_path / "sitecustomize.py").write_text("import sys\nsys.modules['opentelemetry.sdk'] = None")

    _, _, logs = story(shell, PYTHONPATH=str(tmp_path))
    with running(shell, "worker", PYTHONPATH=str(tmp_path), TELECINE_TRACE_ENDPOINT="http://127.0.0.1:9") as (
        asked,
        log,
    ):
        code = asked.wait(PATIENCE)

    assert [name for name, log in logs.items() if '"trace"' in log] == []
    assert code == 2
    assert "pip install 'telecine[tracing]'" in log.read_text()
