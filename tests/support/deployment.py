"""What is in deploy/, read; and all metrics that there can be."""

import asyncio
import json
from functools import cache
from typing import Any

import yaml
from prometheus_client import CollectorRegistry
from prometheus_client.parser import text_string_to_metric_families

from telecine.api.http.request_id import RequestInFlight
from telecine.dispatch.redis import RedisHealth
from telecine.engine.events.counters import BOUNDS
from telecine.engine.queries.gauges import FleetGauges, Lane, Recent, Staffed
from telecine.engine.queries.health import DatabaseHealth, FreeSpace, FullHealth
from telecine.observe.metrics import TIMES, TOTALS, Metrics, Snapshot
from telecine.observe.requests import RequestMetrics
from tests.support.docs import ROOT

DEPLOY = ROOT / "deploy"
MANIFESTS = sorted((DEPLOY / "kubernetes").glob("*.yaml"))


async def rendered() -> str:
    """All metrics that there can be, each with one value at least."""
    labels = {name: json.dumps(["film", "cut", "done"][: len(known[2])]) for name, known in {**TOTALS, **TIMES}.items()}
    totals = [(name, labels[name], 1) for name in TOTALS]
    totals += [(f"{name}_sum", labels[name], 1) for name in BOUNDS]
    figures = FleetGauges(
        lanes=(Lane(lane="film/cut@1"),),
        jobs={("film", "pending"): 1},
        workers=(Staffed(name="w", kind="local", mode="active", slots=1, load=0),),
        recent=(Recent(flow="film", stage="cut", ended=1, again=0, p95=1),),
        totals=tuple(totals),
    )
    room = FreeSpace(status="ok", total_bytes=2, free_bytes=1)
    server = FullHealth(status="ok", storage={"uploads": room}, database=DatabaseHealth(status="ok"), redis="ok")
    redis: dict[str, Any] = dict.fromkeys(RedisHealth.__dataclass_fields__, 0) | {"circuit": "closed"}
    registry = CollectorRegistry()
    requests = RequestMetrics(registry)
    visit = RequestInFlight(id="r", kind="http", method="GET", headers=(), route="/x", status=200)
    requests.came(visit)
    requests.over(visit)

    async def look() -> Snapshot:
        return Snapshot(figures, 0.1, redis, server)

    return (await Metrics(registry, look).text()).decode()


@cache
def known() -> tuple[frozenset[str], frozenset[str]]:
    """Names of samples, as queries use them, and of metrics, as documents do."""
    families = list(text_string_to_metric_families(asyncio.run(rendered())))
    samples = {sample.name for family in families for sample in family.samples}
    whole = {f"{family.name}_total" if family.type == "counter" else family.name for family in families}
    return frozenset(samples), frozenset(whole)


def manifests() -> list[dict[str, Any]]:
    return [part for path in MANIFESTS for part in yaml.safe_load_all(path.read_text()) if part]


def one(kind: str, name: str) -> dict[str, Any]:
    [found] = [part for part in manifests() if part["kind"] == kind and part["metadata"]["name"] == name]
    return found


def compose() -> dict[str, Any]:
    return yaml.safe_load((DEPLOY / "compose.yaml").read_text())  # type: ignore[no-any-return]


def dashboard() -> dict[str, Any]:
    return json.loads((DEPLOY / "grafana" / "telecine.json").read_text())  # type: ignore[no-any-return]


def rules() -> list[dict[str, Any]]:
    [group] = yaml.safe_load((DEPLOY / "prometheus" / "rules.yaml").read_text())["groups"]
    return group["rules"]  # type: ignore[no-any-return]


def dockerfile() -> str:
    return (DEPLOY / "Dockerfile").read_text()
