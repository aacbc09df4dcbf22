"""Metrics: right with several servers and after retention, bounded, without users; and not for everybody."""

import asyncio

import httpx
import pytest
from prometheus_client import CollectorRegistry
from prometheus_client.parser import text_string_to_metric_families

from telecine.engine.events.counters import EventCounters
from telecine.engine.queries.gauges import FleetGauges
from telecine.errors import StoreError
from telecine.facts import Done, Expired, Failed
from telecine.observe.metrics import Metrics, Snapshot, or_nothing
from telecine.wiring.observers import observers
from tests.api.in_process_server import Front
from tests.support.builders import a_flow, a_policy, a_stage

Samples = dict[tuple[str, tuple[str, ...]], float]
FLOW = a_flow(a_stage("cut", policy=a_policy(max_attempts=2)))
LOCAL = {"Host": "127.0.0.1:8484"}


async def scrape(front: Front) -> Samples:
    """All samples, by name and values of their labels, in the order of the names of these."""
    answer = await front.admin.get("/metrics")
    assert answer.status_code == 200, answer.text
    return {
        (sample.name, tuple(value for _, value in sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(answer.text)
        for sample in family.samples
    }


async def counted(front: Front) -> Samples:
    """All samples when all events are counted, without what the server has kept for some seconds."""
    tally = EventCounters(front.parts.store, front.parts.engine.events, front.parts.world)
    while await tally.count():
        pass
    front.house.metrics = observers(front.parts, front.house.artifacts)["metrics"]
    return await scrape(front)


async def a_story(front: Front) -> None:
    """A job that is done, one that failed for good after a retry, one that waits; a worker that holds the last."""
    await front.bed.enact(FLOW)
    await front.bed.submit()
    await front.bed.settle(await front.bed.claim(), Done())
    await front.bed.submit()
    await front.bed.settle(await front.bed.claim(), Failed("no"))
    await front.bed.sql("update task set ready_at = 0 where parked")
    await front.bed.settle(await front.bed.claim(), Failed("no"))
    await front.bed.submit()
    await front.bed.claim()
    await front.bed.submit(owner="canary-owner")


async def test_the_story_of_a_fleet_in_numbers(front: Front) -> None:
    await a_story(front)

    found = await counted(front)

    lane = ("film", "film/cut@1")
    wanted = {
        ("telecine_jobs_created_total", ("film",)): 4,
        ("telecine_jobs_completed_total", ("film", "completed")): 1,
        ("telecine_jobs_completed_total", ("film", "failed")): 1,
        ("telecine_job_duration_seconds_count", ("film", "completed")): 1,
        ("telecine_job_duration_seconds_bucket", ("film", "+Inf", "failed")): 1,
        ("telecine_task_duration_seconds_count", ("film", "cut")): 1,
        ("telecine_task_attempts_total", ("film", "done", "cut")): 1,
        ("telecine_task_attempts_total", ("film", "failed", "cut")): 2,
        ("telecine_task_retries_total", ("film", "cut")): 1,
        ("telecine_task_retries_exhausted_total", ("film", "cut")): 1,
        ("telecine_jobs_pending", ()): 1,
        ("telecine_jobs_failed", ()): 1,
        ("telecine_server_able", ()): 1,
        ("telecine_jobs_in_progress", ()): 1,
        ("telecine_queue_size", lane): 1,
        ("telecine_tasks_running", lane): 1,
        ("telecine_workers_active", ()): 1,
        ("telecine_store_up", ()): 1,
        ("telecine_uploads_open", ()): 0,
        ("telecine_deliveries_dead", ()): 0,
        ("telecine_audit_findings_total", ()): 0,
    }
    assert {key: found.get(key) for key in wanted} == wanted
    assert found["telecine_task_retry_rate", ()] == pytest.approx(1 / 3)
    assert ("telecine_task_duration_p95_seconds", ("film", "cut")) in found
    assert found["telecine_storage_free_bytes", ("uploads",)] > 0
    assert found["telecine_events_counted", ()] == found["telecine_events_newest", ()]
    assert not any("canary" in word for name, labels in found for word in (name, *labels))


async def test_two_servers_count_an_event_once(front: Front) -> None:
    await a_story(front)
    other = await front.bed.another_engine()
    tallies = [EventCounters(engine._store, engine.events, front.parts.world) for engine in (front.parts.engine, other)]

    for _ in range(4):
        await asyncio.gather(*(one.count() for one in tallies * 2))

    found = await counted(front)
    assert found["telecine_jobs_created_total", ("film",)] == 4
    await front.bed.close_guests()


async def test_what_was_counted_stays_when_the_jobs_are_gone(front: Front) -> None:
    await a_story(front)
    before = await counted(front)

    for table in ("event", "attempt", "stage", "task", "job"):
        await front.bed.sql(f"delete from {front.bed.table(table)}")
    after = await counted(front)

    totals = {
        key for key in before if key[0].endswith(("_total", "_bucket", "_sum", "_count")) and "http" not in key[0]
    }
    assert {key: after[key] for key in totals} == {key: before[key] for key in totals}


async def test_counting_goes_on_batch_by_batch(front: Front) -> None:
    await a_story(front)
    tally = EventCounters(front.parts.store, front.parts.engine.events, front.parts.world)

    batches = []
    while batch := await tally.count(wanted=3):
        batches.append(batch)

    assert len(batches) > 2
    assert set(batches[:-1]) == {3}
    assert (await counted(front))["telecine_jobs_created_total", ("film",)] == 4


async def test_a_lost_lease_is_a_recovery_and_the_third_a_quarantine(front: Front) -> None:
    await front.bed.enact(FLOW)
    await front.bed.submit()

    for _ in range(3):
        [lease] = await front.bed.claim()
        await front.bed.sql(f"update task set lease_until = 1 where id = {lease.task_id}")
        await front.parts.engine.give_back([front.bed.worker], Expired())

    found = await counted(front)
    assert found["telecine_recoveries_total", ("film",)] == 3
    assert found["telecine_quarantines_total", ("film",)] == 1
    assert found["telecine_task_retries_exhausted_total", ("film", "cut")] == 0


async def test_requests_are_counted_by_template_and_strangers_add_no_labels(front: Front) -> None:
    await front.ada.get("/api/v1/me")
    for number in range(30):
        await front.nobody.get(f"/api/nowhere/{number}")
    await front.nobody.request("BREW", "/api/v1/me")

    found = await scrape(front)

    routes = {labels for name, labels in found if name == "telecine_http_requests_total"}
    assert found["telecine_http_requests_total", ("GET", "/api/v1/me", "200")] == 1
    assert found["telecine_http_requests_total", ("GET", "(none)", "404")] == 30
    assert "BREW" not in {method for method, _, _ in routes}
    assert found["telecine_http_requests_in_progress", ()] == 1  # this very one


async def test_without_the_database_the_rest_is_still_told(front: Front) -> None:
    async def gone() -> FleetGauges:
        raise StoreError("gone")

    async def look() -> Snapshot:
        return await or_nothing(gone, front.parts.world.mono)

    front.house.metrics = Metrics(CollectorRegistry(), look).text

    assert await scrape(front) == {("telecine_store_up", ()): 0}


async def test_metrics_are_for_administrators_and_this_machine(front: Front) -> None:
    async def status(client: httpx.AsyncClient, headers: dict[str, str] | None = None) -> int:
        return (await client.get("/metrics", headers=headers)).status_code

    assert await status(front.admin) == 200
    assert [await status(client) for client in (front.ada, front.worker)] == [403, 403]
    assert await status(front.nobody, LOCAL) == 200
    assert await status(front.nobody) == 401  # by a name that leads here
    assert await status(front.nobody, {**LOCAL, "X-Forwarded-For": "9.9.9.9"}) == 401
    assert await status(front.nobody, {**LOCAL, "Authorization": "Bearer wrong"}) == 401


async def test_with_a_token_this_machine_needs_it_too(front: Front) -> None:
    front.house.settings = front.settings.model_copy(update={"metrics_token": "open sesame"})

    right = await front.nobody.get("/metrics", headers={"Authorization": "Bearer open sesame"})
    without = await front.nobody.get("/metrics", headers=LOCAL)

    assert (right.status_code, without.status_code) == (200, 401)
    assert "open sesame" not in right.text
