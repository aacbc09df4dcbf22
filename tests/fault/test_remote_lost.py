"""The answer to each word is lost once, on a real connection: what was done is done, and its repeat says the same."""

import asyncio
import hashlib
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from telecine.engine import Engine
from telecine.errors import Unreachable
from telecine.facts import Done, HeldLease, KeptArtifact, Lease, LeaseOutcome, LogEntry, WorkerId
from telecine.wiring import open_engine
from telecine.worker.attempts import Attempt
from telecine.worker.http import HttpEngine, Server, ShutOutSignal
from telecine.world import World
from tests.api.worker_client import nowhere, registration
from tests.fault.server_processes import FLOWS, Outpost, outpost
from tests.support.flaky_proxy import CuttingProxy, cutting_proxy

LANES = {"quick/quick@1": "quick"}


@pytest.fixture(scope="module")
def post(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Outpost]:
    """One server for all: no test here harms it."""
    folder = tmp_path_factory.mktemp("post")
    with outpost(folder, f"sqlite:///{folder}/telecine.db", flows=FLOWS, lease_seconds=120) as own:
        own.serve()
        yield own


class Stage:
    """A worker behind the proxy, with one task in its hands."""

    def __init__(self, engine: Engine, words: HttpEngine, proxy: CuttingProxy) -> None:
        self.engine = engine
        self.words = words
        self.proxy = proxy
        self.worker = WorkerId(0)

    async def take(self, request: str) -> list[Lease]:
        return await self.words.claim(self.worker, request, LANES, 1)


@asynccontextmanager
async def stage(post: Outpost) -> AsyncIterator[Stage]:
    key, barred, world = post.register("ann").read_text(), ShutOutSignal(), World()
    async with (
        open_engine(post.settings) as parts,
        cutting_proxy(post.port) as proxy,
        Server(proxy.url, key, barred) as server,
    ):
        own = Stage(parts.engine, HttpEngine(server, barred, world, wait=0.0), proxy)
        own.worker = await own.words.enlist(registration(lanes=tuple(LANES)))
        await parts.engine.jobs.submit("quick")
        yield own
        await own.words.retire(own.worker)


def play(scene: object) -> None:
    asyncio.run(asyncio.wait_for(scene, 60))  # type: ignore[arg-type]


def test_a_claim_gets_the_same_leases(post: Outpost) -> None:
    async def scene() -> None:
        async with stage(post) as own:
            own.proxy.lose(b"POST /api/worker/claim")

            with pytest.raises(Unreachable):
                await own.take("request-1")
            again, third = await own.take("request-1"), await own.take("request-1")

            assert own.proxy.lost == 1
            assert [lease.token for lease in again] == [1]
            assert third == again

    play(scene())


def test_an_outcome_is_answered_as_the_first_time(post: Outpost) -> None:
    async def scene() -> None:
        async with stage(post) as own:
            [lease] = await own.take("request-1")
            word = LeaseOutcome(lease.task_id, lease.token, Done(result={"n": 1}))
            own.proxy.lose(b"POST /api/worker/settle")

            with pytest.raises(Unreachable):
                await own.words.settle([word])
            [answer] = await own.words.settle([word])

            assert (answer.accepted, answer.code, answer.repeated) == (True, "done", True)

    play(scene())


def test_what_was_kept_is_kept_once(post: Outpost) -> None:
    async def scene() -> None:
        async with stage(post) as own:
            [lease] = await own.take("request-1")
            item = KeptArtifact(name="mark", token=lease.token, value=7)
            own.proxy.lose(b"POST /api/worker/keep")

            with pytest.raises(Unreachable):
                await own.words.keep(lease.task_id, lease.token, [item])
            await own.words.keep(lease.task_id, lease.token, [item])

            assert (await own.words.brief(lease)).kept["mark"].value == 7

    play(scene())


def test_enlisting_makes_one_worker(post: Outpost) -> None:
    async def scene() -> None:
        async with stage(post) as own:
            before = len(await own.engine.queries.workers(gone=True))
            own.proxy.lose(b"POST /api/worker/enlist")

            with pytest.raises(Unreachable):
                await own.words.enlist(registration(lanes=()))
            again = await own.words.enlist(registration(lanes=()))

            assert len(await own.engine.queries.workers(gone=True)) == before + 1
            await own.words.retire(again)

    play(scene())


def test_a_beat_and_its_lines_may_be_said_again(post: Outpost) -> None:
    async def scene() -> None:
        async with stage(post) as own:
            [lease] = await own.take("request-1")
            held = [HeldLease(task_id=lease.task_id, token=lease.token, progress=0.5)]
            own.proxy.lose(b"POST /api/worker/heartbeat")

            with pytest.raises(Unreachable):
                await own.words.beat(own.worker, held)
            orders = await own.words.beat(own.worker, held)
            await own.words.log([LogEntry(task_id=lease.task_id, token=lease.token, message="here")])

            assert orders.renewed == ((lease.task_id, lease.token),)

    play(scene())


@pytest.mark.parametrize("size", [1_000, 20_000_000])
def test_an_upload_whose_answers_are_lost_arrives_whole(post: Outpost, tmp_path: Path, size: int) -> None:
    async def scene() -> None:
        async with stage(post) as own:
            [lease] = await own.take("request-1")
            data = bytes(range(256)) * (size // 256 + 1)
            path = tmp_path / "film"
            path.write_bytes(data)
            own.proxy.lose(b"PUT /api/worker/artifacts")

            key, stored = await own.words.place.put(Attempt(lease, float("inf")), "film", path, nowhere)

            assert own.proxy.lost == 1
            assert stored.sha256 == hashlib.sha256(data).hexdigest()
            assert (Path(post.given["artifacts_url"]) / key).read_bytes() == data

    play(scene())


def test_an_upload_over_a_line_that_breaks_again_and_again_goes_on_where_it_was(post: Outpost, tmp_path: Path) -> None:
    async def scene() -> None:
        async with stage(post) as own:
            [lease] = await own.take("request-1")
            path = tmp_path / "film"
            path.write_bytes(bytes(range(256)) * 100_000)
            own.proxy.every = 3

            _, stored = await own.words.place.put(Attempt(lease, float("inf")), "film", path, nowhere)

            assert stored.size == 256 * 100_000
            assert own.proxy.lost > 1
            own.proxy.every = 0

    play(scene())
