"""Servers die, and come in numbers: each letter arrives, and a receiver can tell a repeated one. Real processes."""

import asyncio
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from telecine.engine import Engine, Registration
from telecine.engine.webhooks.subscriptions import WebhookRequest, Webhooks
from telecine.facts import Done, LeaseOutcome
from tests.fault.server_processes import told
from tests.fault.worker_processes import SHORT, Crew, on, rows, until
from tests.support.builders import a_flow
from tests.support.flows import wait
from tests.support.process_pool import TELECINE, Actor, enter
from tests.support.scene import execute
from tests.support.webhook_receiver import Receiver, listen, silent

BRISK = {
    "ALLOW_PRIVATE_WEBHOOKS": "127.0.0.1",
    "WEBHOOK_TIMEOUT_SECONDS": "30",
    "WEBHOOK_BACKOFF_SECONDS": "0.1",
    "POLL_SECONDS": "0.1",
    "SWEEP_SECONDS": "0.2",
    "PUBLIC_URL": "https://films.example",
}
# How long a letter is its sender's, in milliseconds: the receiver's time, and a margin.
LEASE = 35_000


class Servers:
    """Server processes on one database; all are gone when the test ends."""

    def __init__(self, url: str, folder: Path) -> None:
        self._url, self._folder = url, folder
        self._all: list[Actor] = []

    def start(self, **settings: str) -> Actor:
        given = {**BRISK, "DATABASE_URL": self._url, "ARTIFACTS_URL": str(self._folder / "artifacts"), **settings}
        plain = {name: value for name, value in os.environ.items() if not name.startswith("TELECINE_")}
        server = enter(
            TELECINE,
            ["serve", "--port", "0", "--json"],
            folder=self._folder,
            environ={**plain, **{f"TELECINE_{name}": value for name, value in given.items()}},
            out=self._said(len(self._all)),
            log=self._folder / f"server-{len(self._all)}.log",
        )
        self._all.append(server)
        return server

    async def serving(self, server: Actor) -> None:
        """Wait until it says where it listens."""
        said = self._said(self._all.index(server))
        await until(lambda: server.poll() is not None or "address" in (told(said) or {}))
        assert server.poll() is None, self.log()

    def _said(self, number: int) -> Path:
        return self._folder / f"server-{number}.said"

    def log(self) -> str:
        return "\n".join(path.read_text() for path in sorted(self._folder.glob("server-*.log")))

    def end(self) -> None:
        for server in self._all:
            server.kill()
            server.wait()


@pytest.fixture
def servers(url: str, tmp_path: Path) -> Iterator[Servers]:
    own = Servers(url, tmp_path)
    yield own
    own.end()


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with listen() as receiver:
        yield receiver


async def subscribed(engine: Engine, receiver: Receiver) -> str:
    made = await Webhooks(engine._store, engine.world, private=["127.0.0.1"]).add(
        WebhookRequest(url=receiver.url(), owner="ada")
    )
    return made.key


async def jobs_done(engine: Engine, count: int = 1) -> None:
    flow = a_flow()
    await engine.jobs.register(flow)
    lanes = {flow.graph.lane(0): flow.name}
    worker = await engine.enlist(Registration(name="ann", hostname="here", lanes=tuple(lanes), slots=count))
    for _ in range(count):
        await engine.jobs.submit("film", owner="ada")
    leases = await engine.claim(worker, "request", lanes, count)
    await engine.settle([LeaseOutcome(lease.task_id, lease.token, Done()) for lease in leases])
    assert len(leases) == count


async def standing(engine: Engine) -> list[tuple[str, int]]:
    found = await rows(engine, "select state, tries from delivery order by id")
    return [(row["state"], row["tries"]) for row in found]


async def all_done(engine: Engine, count: int) -> None:
    async def look() -> bool:
        found = await standing(engine)
        return len(found) == count and {state for state, _ in found} == {"done"}

    await until(look, within=60)


def test_a_server_killed_between_sending_and_noting_it_is_followed_by_one_that_sends_the_same_letter(
    url: str, servers: Servers, receiver: Receiver
) -> None:
    receiver.turns["/hook"] = [silent]

    async def play(engine: Engine) -> None:
        await subscribed(engine, receiver)
        await jobs_done(engine)
        first = servers.start()
        await asyncio.to_thread(receiver.wait_for, 1)

        first.kill()
        first.wait()
        assert await standing(engine) == [("waiting", 1)]
        await execute(engine._store, f"update delivery set next_at = next_at - {LEASE}, until = until - {LEASE}")
        servers.start()
        heard = await asyncio.to_thread(receiver.wait_for, 2)
        await all_done(engine, 1)

        assert len({(one.id, one.body) for one in heard}) == 1
        assert await standing(engine) == [("done", 2)]

    on(url, play)


def test_two_servers_at_once_send_each_letter_once(url: str, servers: Servers, receiver: Receiver) -> None:
    async def play(engine: Engine) -> None:
        await subscribed(engine, receiver)
        both = [servers.start() for _ in range(2)]
        for server in both:
            await servers.serving(server)

        await jobs_done(engine, 40)
        await all_done(engine, 40)

        assert len(receiver.heard) == len({one.id for one in receiver.heard}) == 40

    on(url, play)


def test_a_server_stops_in_order_while_a_receiver_never_answers(
    sqlite_url: str, tmp_path: Path, receiver: Receiver
) -> None:
    servers = Servers(sqlite_url, tmp_path)
    receiver.manners["/hook"] = silent

    async def play(engine: Engine) -> None:
        key = await subscribed(engine, receiver)
        await jobs_done(engine)
        server = servers.start(WEBHOOK_TIMEOUT_SECONDS="60")
        await servers.serving(server)
        await asyncio.to_thread(receiver.wait_for, 1)

        server.send_signal(signal.SIGTERM)
        code = await asyncio.to_thread(server.wait, 30)

        assert code == 0
        assert [state for state, _ in await standing(engine)] == ["waiting"]
        assert key.removeprefix("whsec_") not in servers.log()

    try:
        on(sqlite_url, play)
    finally:
        servers.end()


def test_a_killed_worker_is_alerted_to_in_words(
    sqlite_url: str, tmp_path: Path, workers_on_sqlite: Crew, receiver: Receiver
) -> None:
    servers, workers = Servers(sqlite_url, tmp_path), workers_on_sqlite

    async def play(engine: Engine) -> None:
        await engine.jobs.register(wait)
        kinds = "stale_job_recovered,worker_startup,worker_shutdown"
        ways: dict[str, Any] = {
            "ALERT_WEBHOOK_URL": receiver.url("/ops"),
            "ALERT_FORMAT": "discord",
            "ALERT_KINDS": kinds,
        }
        server = servers.start(**ways)
        await servers.serving(server)
        await engine.jobs.submit("wait", {"folder": str(workers.folder)})
        ann = workers.start("ann", **SHORT)
        await workers.started()

        ann.kill()
        heard = await asyncio.to_thread(receiver.wait_for, 3, "/ops")

        said = sorted(one.json["content"].partition("\\:")[0] for one in heard)
        assert said == ["Stale job recovered", "Worker down", "Worker up"]

    try:
        on(sqlite_url, play)
    finally:
        servers.end()
