"""A worker as a process of its own; its arguments: URL FOLDER '{"options": …}'.

Options: those of `WorkerOptions`, and `flows` (names), `hostname` (another machine, as far as recovery can see),
`deaf` (a bell that nobody ever rings), `swift` (on uvloop, as `telecine worker` is) and `module` (where its flows are).
"""

import asyncio
import json
import logging
import sys
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import uvloop

from telecine.dispatch import Bell
from telecine.dispatch.postgres import PostgresBell
from telecine.dispatch.sqlite import SqliteBell
from telecine.engine import Engine
from telecine.store import Store
from telecine.store.open import bring_up_to_date, dialect_of, open_store
from telecine.worker import FlowSource, Worker, WorkerOptions, load_flows
from telecine.worker.local_engine import LocalEngine
from telecine.world import Machine, World
from tests.support import flows as flows_for_tests


class DeafBell:
    """Every ring is lost; whoever waits looks by himself."""

    vague = False

    def ring(self, lanes: Iterable[str]) -> None:
        return None

    async def wait(self, timeout: float) -> None:
        await asyncio.sleep(timeout)

    async def close(self) -> None:
        return None


def bell_for(url: str, world: World) -> Bell:
    if dialect_of(url) == "sqlite":
        return SqliteBell(url.removeprefix("sqlite:///"))
    return PostgresBell(url, world)


@asynccontextmanager
async def open_engine(
    url: str, *, world: World | None = None, bell: Bell | None = None, **options: Any
) -> AsyncIterator[Engine]:
    """An engine on an up-to-date database."""
    world = world or World()
    store: Store = open_store(url, dice=world.dice)
    own = bell or bell_for(url, world)
    try:
        await bring_up_to_date(store, url)
        yield Engine(store, bell=own, world=world, **options)
    finally:
        await own.close()
        await store.close()


@asynccontextmanager
async def open_worker(url: str, folder: Path, given: dict[str, Any]) -> AsyncIterator[Worker]:
    """A worker that is ready to run."""
    given = {"name": "worker", "scratch": folder / "scratch", "artifacts": str(folder / "artifacts"), **given}
    source = FlowSource(module=given.pop("module", "tests.support.flows"))
    hostname, deaf, names = given.pop("hostname", None), given.pop("deaf", False), given.pop("flows", None)
    # Nothing but its own heartbeat tells others whether a worker of another machine lives.
    world = World() if hostname is None else World(machine=Machine(hostname, hostname, hostname))
    options = WorkerOptions(**{**given, "scratch": Path(given["scratch"]), "labels": tuple(given.get("labels", ()))})
    bell = DeafBell() if deaf else bell_for(url, world)

    @asynccontextmanager
    async def beat_words() -> AsyncIterator[LocalEngine]:
        async with open_engine(url, world=world, bell=DeafBell(), lease=options.lease) as engine:
            yield LocalEngine(engine)

    async with open_engine(url, world=world, bell=bell, lease=options.lease) as engine:
        flows = [flow for flow in load_flows(source) if names is None or flow.name in names]
        for flow in flows:
            await engine.jobs.register(flow)
        yield Worker(LocalEngine(engine), bell, flows, options, world, beat_words)


async def run(url: str, folder: Path, given: dict[str, Any]) -> None:
    async with open_worker(url, folder, given) as worker:
        worker.obey_signals()
        await worker.run()


def main() -> None:
    assert flows_for_tests
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(name)s %(message)s")
    given = json.loads(sys.argv[3])
    swift = given.pop("swift", False)
    with asyncio.Runner(loop_factory=uvloop.new_event_loop if swift else None) as runner:
        runner.run(run(sys.argv[1], Path(sys.argv[2]), given))
