"""Flows and counts over HTTP: everybody may look at flows, administrators pause them; an owner counts his own."""

from telecine.facts import Failed
from tests.api.in_process_server import Front
from tests.support.builders import a_flow

FLOWS, STATS = "/api/v1/flows", "/api/v1/stats"


async def test_flows_are_listed_with_their_stages(front: Front) -> None:
    await front.parts.engine.jobs.register(a_flow("cut", "join"))

    [flow] = (await front.ada.get(FLOWS)).json()["items"]
    one = (await front.ada.get(f"{FLOWS}/film")).json()

    assert (flow["name"], [stage["name"] for stage in flow["stages"]]) == ("film", ["cut", "join"])
    assert one == flow
    assert (await front.ada.get(f"{FLOWS}/nosuch")).json()["code"] == "not_found"


async def test_an_administrator_pauses_a_flow_and_lets_it_go_on(front: Front) -> None:
    await front.bed.enact(a_flow())
    await front.bed.submit()

    forbidden = await front.ada.post(f"{FLOWS}/film/pause")
    paused = await front.admin.post(f"{FLOWS}/film/pause")
    nothing = await front.bed.claim(1)
    resumed = await front.admin.post(f"{FLOWS}/film/resume")

    assert (forbidden.status_code, forbidden.json()["code"]) == (403, "not_allowed")
    assert (paused.json()["paused"], nothing, resumed.json()["paused"]) == (True, [], False)
    assert len(await front.bed.claim(1)) == 1
    assert (await front.admin.post(f"{FLOWS}/nosuch/pause")).status_code == 404


async def test_an_owner_counts_his_own_and_an_administrator_all(front: Front) -> None:
    await front.bed.enact(a_flow())
    for owner in ("ada", "ada", "bob"):
        await front.bed.submit(owner=owner)
    await front.bed.settle(await front.bed.take(), Failed("no", permanent=True))
    await front.bed.submit(owner="ada", run_at=9_000_000_000_000)

    hers, his, everything = [(await client.get(STATS)).json() for client in (front.ada, front.bob, front.admin)]

    assert hers["jobs"] == {"pending": 2, "failed": 1}
    assert hers["tasks"] == {"new": 0, "ready": 1, "parked": 1, "running": 0}
    assert his == {"cap": 10_000, "jobs": {"pending": 1}, "tasks": {"new": 0, "ready": 1, "parked": 0, "running": 0}}
    assert (everything["jobs"]["pending"], everything["workers"], "workers" in hers) == (3, 1, False)
