"""Releases that differ: a worker of wire version 1 with this server, and a later server with this worker.

`wire_v1.json` is a recording of version 1: each line is one exchange between a worker and a server, in order. It is
frozen. A worker of that release refuses fields that it does not know, so this server must send none.
"""

import json
from dataclasses import fields
from pathlib import Path
from typing import Any

import httpx
import pytest

from telecine.engine.accounts.keys import Scope
from telecine.facts import Brief, Done, KeptArtifact, Lease, LeaseOutcome, Mode, SettleReply, StoredArtifact, WorkerId
from telecine.wire.registration import VERSION
from telecine.wire.responses import AnswerMessage, BriefResponse, LeaseMessage
from telecine.worker.http import HttpEngine, Server, ShutOutSignal
from telecine.world import World
from tests.api.in_process_server import ANY_DATABASE, Front
from tests.api.worker_client import LANES, held, nowhere, registration
from tests.support.builders import a_flow, a_stage

RECORDED: list[dict[str, Any]] = json.loads(Path(__file__).with_name("wire_v1.json").read_text())
FAN = a_flow(a_stage("cut"), a_stage("join", "cut", fan_out=True))
# Moments, and the release of the server.
VARIES = {"until", "now", "ready_at", "release"}


class WorkerV1:
    """A worker of wire version 1: sends what was recorded, and reads answers as strictly as that release did."""

    def __init__(self, client: httpx.AsyncClient) -> None:
        self._client = client

    async def repeat(self, one: dict[str, Any]) -> None:
        body = one["body"]
        content = json.dumps(body) if isinstance(body, dict) else body
        answer = await self._client.request(one["method"], one["path"], content=content, headers=one["headers"])
        what = f"{one['method']} {one['path']}: {answer.text}"
        assert answer.status_code == one["status"], what
        if isinstance(one["answer"], dict):
            assert _steady(answer.json()) == _steady(one["answer"]), what
            length = {"content-length"}  # moments and releases differ in length
        else:
            assert answer.text == one["answer"], what
            length = set()
        for name, value in one["answer_headers"].items():
            assert name in length or answer.headers[name] == value, what


def _steady(value: Any) -> Any:
    """Without what varies from run to run; the fields themselves must be there, and no others."""
    if isinstance(value, list):
        return [_steady(one) for one in value]
    if not isinstance(value, dict):
        return value
    return {name: (type(one).__name__ if name in VARIES else _steady(one)) for name, one in value.items()}


@ANY_DATABASE
async def test_a_worker_of_wire_version_1_works_for_this_server(front: Front) -> None:
    engine = front.parts.engine
    await engine.jobs.register(FAN)
    job = await engine.jobs.submit("film", {"of": "bees"}, subject=("video", "bees"))
    await engine.jobs.submit("film", {"of": "ants"})
    worker = WorkerV1(await front.client(Scope.WORKER, name="ann"))

    for one in RECORDED:
        await worker.repeat(one)

    assert {one["path"].split("/")[3] for one in RECORDED} >= {
        "terms", "enlist", "claim", "heartbeat", "log", "artifacts", "keep", "brief", "kept", "digest", "settle",
        "published", "link", "progress", "fail", "complete", "release", "drain", "retire",
    }  # fmt: skip
    view = await engine.queries.job(job.job_id)
    assert [stage.state for stage in view.stages] == ["done", "ready"]


class LaterServer(httpx.AsyncBaseTransport):
    """Answers as version 1 did, with fields that only a later release knows, at every level."""

    def __init__(self) -> None:
        self._answers = list(RECORDED)

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        path = request.url.raw_path.decode()
        [found, *_] = [one for one in self._answers if (one["method"], one["path"]) == (request.method, path)]
        self._answers.remove(found)
        answer, headers = found["answer"], found["answer_headers"]
        if not isinstance(answer, dict):
            return httpx.Response(found["status"], content=answer.encode(), headers=headers, request=request)
        return httpx.Response(found["status"], json=_grown(answer), request=request)


FREE = ("spec", "input", "value", "facts", "results", "capabilities")  # JSON of users, which is no message


def _grown(value: Any) -> Any:
    if isinstance(value, list):
        return [_grown(one) for one in value]
    if not isinstance(value, dict):
        return value
    same = {name: one if name in FREE else _grown(one) for name, one in value.items()}
    return {**same, "of_a_later_release": {"colour": "blue"}}


async def test_this_worker_works_for_a_later_server_that_sends_more_fields(tmp_path: Path) -> None:
    barred = ShutOutSignal()
    async with Server("http://telecine.test", "key", barred, transport=LaterServer()) as server:
        words = HttpEngine(server, barred, World(), wait=0.0)
        place = words.place

        terms = await words.terms()
        worker = await words.enlist(registration())
        leases = await words.claim(worker, "request-1", LANES, 5)
        cut = leases[0]
        orders = await words.beat(worker, [])
        made = tmp_path / "made"
        made.write_bytes(b"segment")
        key, stored = await place.put(held(cut), "720p/00001.m4s", made, nowhere)
        brief = await words.brief(cut)
        digest = await place.digest(held(cut), key, nowhere)
        [answer] = await words.settle([LeaseOutcome(cut.task_id, cut.token, Done())])
        shelved = await words.artifacts(cut, ["cut"])

    assert (terms.version, terms.lease_ms, worker) == (VERSION, 20_000, WorkerId(1))
    assert all(type(lease) is Lease for lease in leases)
    assert (cut.job_id, cut.subject, cut.spec, cut.needs_brief) == (1, ("video", "bees"), {"of": "bees"}, True)
    assert (orders.mode, orders.renewed) == (Mode.ACTIVE, ((1, 1), (2, 1)))
    assert (key, stored, digest) == ("1/cut@1/0/1/720p/00001.m4s", digest, stored)
    assert type(brief) is Brief
    assert brief.kept["mark"] == KeptArtifact(name="mark", token=1, value={"n": [1, None]})
    assert (answer.accepted, answer.state) == (True, "done")
    assert [(type(one), one.stage, one.kept.name) for one in shelved] == [
        (StoredArtifact, "cut", "720p/00001.m4s"),
        (StoredArtifact, "cut", "mark"),
    ]


@pytest.mark.parametrize("path", ["claim", "heartbeat", "settle", "keep", "enlist"])
@ANY_DATABASE
async def test_a_request_with_an_unknown_field_is_refused(front: Front, path: str) -> None:
    worker = await front.client(Scope.WORKER, name="ann")
    [one, *_] = [one for one in RECORDED if one["path"] == f"/api/worker/{path}"]

    answer = await worker.post(one["path"], json={**one["body"], "of_a_later_release": 1})

    assert (answer.status_code, answer.json()["code"]) == (422, "bad_request")
    assert "of_a_later_release" in answer.text


def test_leases_briefs_and_answers_are_on_the_wire_as_they_are_in_facts() -> None:
    assert set(LeaseMessage.model_fields) == set(Lease._fields)
    assert set(BriefResponse.model_fields) == {field.name for field in fields(Brief)}
    assert set(AnswerMessage.model_fields) == set(SettleReply._fields)
