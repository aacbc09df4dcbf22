"""The flow that is drained: one stage, inline, nothing to do. It only tells the crew which job has begun."""

from __future__ import annotations

from typing import Any

from benchmarks.engine.crew import Post
from benchmarks.engine.measures import index_of, payload
from benchmarks.engine.ours.place import open_engine, settings_for
from telecine import Bench, Flow
from telecine.cli.common import perform
from telecine.engine import Submission
from telecine.wiring import make_worker

FLOW = "noop"


def noop_flow(started: Any = None) -> Flow:
    flow = Flow(FLOW)

    @flow.stage(name="run", run="inline")
    async def _run(bench: Bench) -> None:
        if started is not None:
            started(index_of(bench.spec["text"]))

    return flow


def submissions(indexes: range) -> list[Submission]:
    return [Submission(flow=FLOW, spec={"text": payload(index)}) for index in indexes]


def work(place: str, post: Post) -> None:
    """A worker program on `place`; the number of slots comes before the address."""
    slots, _, url = place.partition("@")

    async def drain() -> None:
        async with open_engine(settings_for(url, slots=int(slots))) as parts:
            flow = noop_flow(post.started)
            await parts.engine.jobs.register(flow)
            post.ready()
            await make_worker(parts, [flow]).run()

    perform(drain(), swift=True)  # as `telecine worker` does
