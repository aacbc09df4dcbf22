"""The alert rules over what a server really says: the first failure of a fresh fleet is seen, idleness is none."""

from telecine.facts import Done, Expired, Failed
from tests.api.in_process_server import Front
from tests.api.test_metrics import counted
from tests.support.builders import a_flow, a_policy, a_stage
from tests.support.deployment import dashboard, rules
from tests.support.promql import History

FLOW = a_flow(a_stage("cut", policy=a_policy(max_attempts=1)))
EVERY = 15.0
# What our little reader of queries does not know; such a query must say for itself what it is without data.
BEYOND = ("histogram_quantile", "topk(", "deriv(")
MINUTE = 60.0


class Watched:
    """A server that is scraped every 15 seconds of a clock that we move."""

    def __init__(self, front: Front) -> None:
        self.front, self.history, self.now = front, History(), 0.0

    async def scrape(self, seconds: float) -> None:
        await counted(self.front)
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
            if "histogram_quantile" in rule["expr"] or rule["alert"] == "TelecineNobodySweeps":
                continue  # about requests, and about workers that sweep: there are none in these stories
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


async def test_panels_of_an_idle_fleet_say_zero_not_nothing(front: Front) -> None:
    await front.bed.enact(FLOW)
    watched = Watched(front)
    await watched.scrape(31 * MINUTE)

    queries = [target["expr"] for panel in dashboard()["panels"] for target in panel.get("targets", ())]
    beyond = [one for one in queries if any(word in one for word in BEYOND)]
    silent = [one for one in queries if one not in beyond and not watched.history.value(one, watched.now - EVERY)]

    assert silent == []
    assert [one for one in beyond if not one.endswith("or on() vector(0)")] == []
