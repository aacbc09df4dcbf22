"""The alert rules over what a server really says: the first failure of a fresh fleet is seen, idleness is none."""

import re

import pytest
from prometheus_client.parser import text_string_to_metric_families

from telecine.api.http.request_id import RequestInFlight
from telecine.errors import StoreError
from telecine.facts import Done, Expired, Failed
from tests.api.in_process_server import Front
from tests.api.test_metrics import counted
from tests.support.builders import a_flow, a_policy, a_stage
from tests.support.deployment import dashboard, rules
from tests.support.promql import History

FLOW = a_flow(a_stage("cut", policy=a_policy(max_attempts=1)))
EVERY = 15.0
MINUTE = 60.0


class Watched:
    """A server that is scraped every 15 seconds of a clock that we move. `counts_requests`: about its own requests."""

    def __init__(self, front: Front, *, counts_requests: bool = False) -> None:
        self.front, self.history, self.now = front, History(), 0.0
        self._counts_requests = counts_requests

    async def scrape(self, seconds: float) -> None:
        if not self._counts_requests:
            await counted(self.front)  # with a registry of its own, in which no request is counted
        text = (await self.front.admin.get("/metrics")).text
        until = self.now + seconds
        while self.now < until:
            self.history.add(self.now, text, instance="server:8484", job="telecine")
            self.now += EVERY

    def firing(self, *, held: bool = True) -> set[str]:
        """Which rules have something to say now; `held`: as long as their `for` wants it."""
        moments = (self.now - EVERY,)
        found = set()
        for rule in rules():
            if rule["alert"] == "TelecineNobodySweeps":
                continue  # about workers that sweep: there are none in these stories
            lasting = int(rule.get("for", "0m")[:-1]) * MINUTE if held else 0.0
            times = [moment - back for moment in moments for back in (0.0, lasting)]
            if all(self.history.value(rule["expr"], at) for at in times):
                found.add(rule["alert"])
        return found


async def failed(front: Front, count: int) -> None:
    for _ in range(count):
        await front.bed.submit()
        await front.bed.settle(await front.bed.claim(), Failed("no"))


async def test_three_of_three_failed_jobs_are_told(front: Front) -> None:
    await front.bed.enact(FLOW)
    watched = Watched(front)
    await watched.scrape(5 * MINUTE)
    assert watched.firing() == set()

    await failed(front, 3)
    await watched.scrape(6 * MINUTE)

    assert watched.firing() == {"TelecineJobsFail", "TelecineRetriesExhausted"}


async def test_one_failure_among_many_jobs_is_no_alert_about_jobs(front: Front) -> None:
    await front.bed.enact(FLOW)
    watched = Watched(front)
    await watched.scrape(5 * MINUTE)

    for _ in range(9):
        await front.bed.submit()
        await front.bed.settle(await front.bed.claim(), Done())
    await failed(front, 1)
    await watched.scrape(6 * MINUTE)

    assert "TelecineJobsFail" not in watched.firing()


async def test_the_first_quarantine_is_told(front: Front) -> None:
    await front.bed.enact(a_flow(a_stage("cut")))
    watched = Watched(front)
    await watched.scrape(5 * MINUTE)

    await front.bed.submit()
    for _ in range(3):
        [lease] = await front.bed.claim()
        await front.bed.sql(f"update task set lease_until = 1 where id = {lease.task_id}")
        await front.parts.engine.give_back([front.bed.worker], Expired())
    await watched.scrape(2 * MINUTE)

    assert "TelecineQuarantine" in watched.firing()


async def test_the_first_errors_of_a_route_are_told(front: Front, monkeypatch: pytest.MonkeyPatch) -> None:
    watched = Watched(front, counts_requests=True)
    await watched.scrape(5 * MINUTE)
    assert "TelecineServerErrors" not in watched.firing()

    async def broken(*args: object, **more: object) -> None:
        raise StoreError("the database is away")

    for _ in range(2):
        with monkeypatch.context() as patch:
            patch.setattr(front.parts.engine._store, "read", broken)
            assert (await front.ada.get("/api/v1/jobs")).status_code == 503
        await watched.scrape(3 * MINUTE)

    assert "TelecineServerErrors" in watched.firing()


async def test_counters_of_failures_start_at_zero_for_every_route(front: Front) -> None:
    scraped = text_string_to_metric_families((await front.admin.get("/metrics")).text)
    samples = [one for family in scraped for one in family.samples if one.name == "telecine_http_requests_total"]
    failures = {tuple(one.labels[name] for name in ("route", "method", "status")): one.value for one in samples}

    at_zero = {(_shape(route), method, status) for (route, method, status), value in failures.items() if value == 0}
    paths = front.app.openapi()["paths"].items()
    operations = {(_shape(path), method.upper()) for path, methods in paths for method in methods}
    missing = [(*one, status) for one in operations for status in ("500", "503") if (*one, status) not in at_zero]
    assert missing == []
    assert failures["/api/v1/uploads", "POST", "507"] == 0
    assert failures["/health", "HEAD", "503"] == 0
    assert failures["(page)", "GET", "500"] == 0
    assert len(failures) < 500


def _shape(template: str) -> str:
    """Without the names and converters of its parameters, which OpenAPI writes in another way."""
    return re.sub(r"{[^}]*}", "{}", template)


async def test_slow_requests_are_told(front: Front) -> None:
    watched = Watched(front, counts_requests=True)
    await watched.scrape(6 * MINUTE)
    [requests, *_] = front.house.watchers
    for _ in range(4):
        for _ in range(20):
            visit = RequestInFlight(
                id="r", kind="http", method="GET", headers=(), route="/api/v1/jobs", status=200, seconds=2.0
            )
            requests.came(visit)
            requests.over(visit)
        await watched.scrape(4 * MINUTE)

    assert watched.firing() == {"TelecineServerSlow"}


@pytest.mark.parametrize("counts_requests", [False, True])
async def test_panels_of_an_idle_fleet_say_zero_not_nothing(front: Front, counts_requests: bool) -> None:
    await front.bed.enact(FLOW)
    watched = Watched(front, counts_requests=counts_requests)
    await watched.scrape(31 * MINUTE)

    queries = [target["expr"] for panel in dashboard()["panels"] for target in panel.get("targets", ())]
    silent = [one for one in queries if not watched.history.value(one, watched.now - EVERY)]

    assert silent == []


def test_quantiles_slopes_and_the_largest_are_computed_as_prometheus_does() -> None:
    history = History()
    for at in range(0, 301, 15):
        buckets = {"0.1": 5, "0.5": 9, "1.0": 10, "+Inf": 10}
        lines = [f'x_seconds_bucket{{route="{route}",le="{le}"}} {count * at * weight}'
                 for weight, route in enumerate(("idle", "a", "b")) for le, count in buckets.items()]  # fmt: skip
        history.add(float(at), "\n".join(["# TYPE x_seconds histogram", *lines, f"grows {2 * at + 7}", ""]))

    [slope] = history.value("60 * deriv(grows[5m])", 300.0).values()
    median = history.value("histogram_quantile(0.5, sum by (le) (rate(x_seconds_bucket[5m])))", 300.0)
    ninety = history.value("histogram_quantile(0.9, rate(x_seconds_bucket[5m])) >= 0", 300.0)
    most = history.value('topk(1, rate(x_seconds_bucket{le="+Inf"}[5m]))', 300.0)

    assert slope == pytest.approx(120.0)
    assert list(median.values()) == [pytest.approx(0.1)]
    assert {dict(labels)["route"]: value for labels, value in ninety.items()} == {
        "a": pytest.approx(0.5), "b": pytest.approx(0.5)
    }  # fmt: skip
    assert [dict(labels)["route"] for labels in most] == ["b"]
