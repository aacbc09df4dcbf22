"""The fleet over HTTP: administrators look at workers, and say who may work."""

import pytest

from telecine.engine.accounts.keys import Scope
from telecine.engine.leases.remote_workers import RemoteWorkers
from telecine.worker_facts import Registration
from tests.api.in_process_server import Front
from tests.support.builders import a_flow

WORKERS = "/api/v1/workers"


async def test_workers_are_listed_with_what_they_do(front: Front) -> None:
    await front.bed.enact(a_flow())
    await front.bed.submit()
    lease = await front.bed.take()

    [worker] = (await front.admin.get(WORKERS)).json()["items"]
    one = (await front.admin.get(f"{WORKERS}/{lease.worker}")).json()

    assert (worker["shown"], [task["task_id"] for task in worker["tasks"]]) == ("busy", [lease.task_id])
    assert one["id"] == worker["id"]
    assert (await front.admin.get(f"{WORKERS}/999")).json()["detail"] == "there is no worker 999"


@pytest.mark.parametrize(("word", "shown"), [("drain", "draining"), ("disable", "disabled"), ("enable", "busy")])
async def test_an_administrator_says_who_may_work(front: Front, word: str, shown: str) -> None:
    await front.bed.enact(a_flow())
    await front.bed.submit()
    lease = await front.bed.take()

    answer = await front.admin.post(f"{WORKERS}/{lease.worker}/{word}")

    assert (answer.status_code, answer.json()["shown"]) == (200, shown)
    assert (await front.bed.task(lease.task_id))["state"] == ("ready" if word == "disable" else "running")
    assert (await front.admin.post(f"{WORKERS}/999/{word}")).status_code == 404


async def test_a_revoked_worker_loses_its_work_and_its_key(front: Front) -> None:
    client = await front.client(Scope.WORKER, name="far")
    [key] = [key for key in await front.house.keys.list() if key.name == "far"]
    await front.bed.enact(a_flow())
    far = Registration(name="far", hostname="far", lanes=tuple(front.bed.lanes), kind="remote")
    worker = await RemoteWorkers(front.parts.engine).enlist(key.id, "r", far)
    await front.bed.submit()
    lease = await front.bed.take(worker)

    revoked = await front.admin.post(f"{WORKERS}/{worker}/revoke")

    assert revoked.json()["revoked_at"] is not None
    assert (await front.bed.task(lease.task_id))["state"] == "ready"
    assert (await client.get("/api/v1/me")).json()["detail"] == "this key was revoked"
    assert (await front.admin.post(f"{WORKERS}/{worker}/enable")).status_code == 404


async def test_a_revoked_key_shuts_out_the_workers_that_came_with_it(front: Front) -> None:
    await front.client(Scope.WORKER, name="far")
    [key] = [key for key in await front.house.keys.list() if key.name == "far"]
    await front.bed.enact(a_flow())
    far = Registration(name="far", hostname="far", lanes=tuple(front.bed.lanes), kind="remote")
    worker = await RemoteWorkers(front.parts.engine).enlist(key.id, "r", far)
    await front.bed.submit()
    lease = await front.bed.take(worker)

    gone = await front.admin.delete(f"/api/v1/keys/{key.id}")

    assert gone.status_code == 204
    assert (await front.bed.task(lease.task_id))["state"] == "ready"
    assert (await front.admin.get(f"{WORKERS}/{worker}")).json()["shown"] == "disabled"
