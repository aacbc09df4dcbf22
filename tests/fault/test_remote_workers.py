"""Workers over HTTP as real processes: killed, stopped, shut out, cut off; and the server under them killed, too."""

import asyncio
import signal
from collections.abc import Awaitable, Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from telecine.engine import Engine
from telecine.errors import BadSpec, KeyInvalid
from telecine.facts import JobId
from telecine.settings import Settings
from telecine.store import Ask, Steps
from telecine.wiring.remote import read_key, run_remote_worker
from tests.fault.server_processes import FLOWS, Outpost, outpost
from tests.fault.worker_processes import (
    children_of,
    ended,
    enlisted,
    lives,
    on,
    outcomes,
    result,
    rows,
    started_in,
    until,
)  # fmt: skip
from tests.support.flaky_proxy import cutting_proxy
from tests.support.postgres import fresh_schema
from tests.support.process_pool import Actor

# Most of it does not depend on the database behind the server; what does is tried on both.
BOTH = pytest.mark.parametrize("post", ["own", "postgres"], indirect=True)
# Whoever harms the server has one of his own.
OWN = pytest.mark.parametrize("post", ["own"], indirect=True)


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Outpost]:
    folder = tmp_path_factory.mktemp("shared")
    with outpost(folder, f"sqlite:///{folder}/telecine.db", flows=FLOWS) as own:
        own.serve()
        yield own


@pytest.fixture
def post(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Outpost]:
    """A server with the flows of the tests, and no workers yet."""
    kind = getattr(request, "param", "shared")
    with ExitStack() as open_now:
        url = f"sqlite:///{tmp_path}/telecine.db"
        if kind == "shared":
            own: Outpost = request.getfixturevalue("shared")
        else:
            if kind == "postgres":
                url = open_now.enter_context(fresh_schema(request.getfixturevalue("postgres_url")))
            own = open_now.enter_context(outpost(tmp_path, url, flows=FLOWS))
            own.serve()
        own.signs = tmp_path
        yield own
        own.dismiss()


def work(post: Outpost, name: str = "ann", **given: object) -> Actor:
    return post.work(name, flows=FLOWS, **given)


async def begun(post: Outpost, count: int = 1) -> list[int]:
    """Wait until so many handlers wait for their sign; their processes."""
    return await started_in(post.signs, count)


def play(post: Outpost, scene: Callable[[Engine], Awaitable[None]]) -> None:
    on(str(post.given["database_url"]), scene)


def test_every_kind_of_handler_works_without_a_database(post: Outpost) -> None:
    work(post, slots=2)

    async def scene(engine: Engine) -> None:
        everywhere = (await engine.jobs.submit("everywhere")).job_id
        fan = (await engine.jobs.submit("fan", {"pieces": 40})).job_id

        assert await ended(engine, everywhere, fan) == ["completed", "completed"]
        assert await result(engine, fan) == sum(range(40)) * 2
        assert set(await outcomes(engine, fan)) == {"done"}

    play(post, scene)


def test_the_task_of_a_killed_worker_goes_to_another(post: Outpost) -> None:
    async def scene(engine: Engine) -> None:
        ann = work(post, "ann")
        job = (await engine.jobs.submit("wait", {"folder": str(post.signs)})).job_id
        [handler] = await begun(post)

        ann.kill()
        ann.wait()
        await until(lambda: not lives(handler))
        work(post, "bob")
        await begun(post, 2)
        (post.signs / "go").touch()

        assert await ended(engine, job) == ["completed"]
        assert await outcomes(engine, job) == ["lost", "done"]

    play(post, scene)


def test_nothing_is_granted_to_a_worker_that_died_while_it_waited(post: Outpost) -> None:
    async def scene(engine: Engine) -> None:
        ann = work(post, "waiting")
        await enlisted(engine, "waiting")
        await until(lambda: _beaten(engine))  # by now her question is at the server

        ann.kill()
        ann.wait()
        job = (await engine.jobs.submit("echo")).job_id
        work(post, "bob")

        assert await ended(engine, job) == ["completed"]
        assert await outcomes(engine, job) == ["done"]

    play(post, scene)


async def _beaten(engine: Engine) -> bool:
    [row] = await rows(engine, "select beat_at - registered_at as ms from worker order by id desc limit 1")
    return bool(row["ms"] > 1_000)


def test_a_worker_that_was_stopped_longer_than_its_lease_abandons_its_work(post: Outpost) -> None:
    async def scene(engine: Engine) -> None:
        ann = work(post, "ann")
        job = (await engine.jobs.submit("wait", {"folder": str(post.signs)})).job_id
        [late] = await begun(post)

        ann.send_signal(signal.SIGSTOP)
        work(post, "bob")
        await begun(post, 2)  # her lease has ended, and he has begun
        ann.send_signal(signal.SIGCONT)
        await until(lambda: not lives(late))
        (post.signs / "go").touch()

        assert await ended(engine, job) == ["completed"]
        assert await outcomes(engine, job) == ["lost", "done"]
        assert len(list(post.signs.glob("ended.*"))) == 1

    play(post, scene)


@OWN
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
def test_a_server_that_ends_and_comes_back_costs_no_attempt(post: Outpost, how: signal.Signals) -> None:
    async def scene(engine: Engine) -> None:
        work(post)
        job = (await engine.jobs.submit("wait", {"folder": str(post.signs)})).job_id
        [handler] = await begun(post)
        assert post.server is not None

        post.server.send_signal(how)
        post.server.wait(30)
        (post.signs / "go").touch()  # it ends while there is nobody to tell
        await until(lambda: not lives(handler))
        post.serve()

        assert await ended(engine, job) == ["completed"]
        assert await outcomes(engine, job) == ["done"]

    play(post, scene)


@OWN
def test_server_and_worker_may_both_be_killed(post: Outpost) -> None:
    async def scene(engine: Engine) -> None:
        ann = work(post)
        job = (await engine.jobs.submit("wait", {"folder": str(post.signs)})).job_id
        await begun(post)
        assert post.server is not None

        for process in (post.server, ann):
            process.kill()
            process.wait()
        (post.signs / "go").touch()
        work(post, "bob")  # before there is a server
        post.serve()

        assert await ended(engine, job) == ["completed"]
        assert await outcomes(engine, job) == ["lost", "done"]

    play(post, scene)


def test_a_key_revoked_in_mid_lease_ends_the_worker_and_its_children(post: Outpost) -> None:
    async def scene(engine: Engine) -> None:
        ann = work(post, "anna")
        job = (await engine.jobs.submit("wait", {"folder": str(post.signs)})).job_id
        await begun(post)
        children = children_of(ann.pid)
        [key] = await rows(engine, "select id from api_key where name = 'anna'")

        await engine._store.run(lambda: _revoke(key["id"]))

        assert await until(lambda: ann.poll() is not None and ann.returncode) == 7
        assert children
        await until(lambda: not any(lives(pid) for pid in children))
        assert "does not let this worker in: this key was revoked" in (post.folder / "anna.log").read_text()
        await until(lambda: _is_free(engine, job))
        assert await outcomes(engine, job) == ["released"]
        await engine.jobs.cancel(JobId(job))

    play(post, scene)


def _revoke(key: str) -> Steps[None]:
    """As another process does it that knows nothing of workers: the server finds out."""
    yield Ask("key_revoke", {"id": key, "owner": None})


async def _is_free(engine: Engine, job: int) -> bool:
    [row] = await rows(engine, f"select state, tries, losses from task where job_id = {job}")
    return (row["state"], row["tries"], row["losses"]) == ("ready", 0, 0)


def test_a_worker_with_a_bad_key_ends_with_one_sentence(post: Outpost, tmp_path: Path) -> None:
    key = tmp_path / "bad.key"
    key.write_text(f"tcn_worker_{'0' * 12}_{'1' * 64}_8d1c03f2")
    key.chmod(0o600)
    settings = Settings(server_url=post.url, key_file=key, scratch=tmp_path / "scratch")

    with pytest.raises(KeyInvalid, match="does not let this worker in"):
        asyncio.run(asyncio.wait_for(run_remote_worker(settings, []), 60))


@pytest.mark.parametrize("text", ["hello", f"tcn_owner_{'0' * 12}_{'1' * 64}_8d1c03f2"])
def test_what_is_no_key_of_a_worker_is_told_what_one_looks_like(tmp_path: Path, text: str) -> None:
    key = tmp_path / "other.key"
    key.write_text(text)
    key.chmod(0o600)

    with pytest.raises(BadSpec, match="look like tcn_worker_…"):
        read_key(key)


def test_a_key_that_everybody_can_read_is_refused(post: Outpost) -> None:
    key = post.register_by_command("open")
    mode, text = key.stat().st_mode & 0o777, read_key(key)
    key.chmod(0o644)

    with pytest.raises(BadSpec, match="chmod 600"):
        read_key(key)
    assert (mode, text[:11]) == (0o600, "tcn_worker_")


def test_a_worker_that_is_told_to_stop_finishes_and_leaves(post: Outpost) -> None:
    async def scene(engine: Engine) -> None:
        ann = work(post, "drained")
        await enlisted(engine, "drained")
        job = (await engine.jobs.submit("wait", {"folder": str(post.signs)})).job_id
        await begun(post)

        ann.send_signal(signal.SIGTERM)
        await until(lambda: _mode(engine, "draining"))
        (post.signs / "go").touch()

        assert await until(lambda: ann.poll() is not None and [ann.returncode]) == [0]
        assert await ended(engine, job) == ["completed"]
        [row] = await rows(engine, "select gone_at from worker order by id desc limit 1")
        assert row["gone_at"] is not None

    play(post, scene)


async def _mode(engine: Engine, mode: str) -> bool:
    [row] = await rows(engine, "select mode from worker order by id desc limit 1")
    return bool(row["mode"] == mode)


def test_an_idle_worker_leaves_at_once(post: Outpost) -> None:
    async def scene(engine: Engine) -> None:
        ann = work(post, "idle")
        await enlisted(engine, "idle")

        ann.send_signal(signal.SIGTERM)

        assert await until(lambda: ann.poll() is not None and [ann.returncode], within=15) == [0]

    play(post, scene)


@BOTH
def test_every_seventh_answer_is_lost_on_a_slow_way_and_nothing_is_done_twice(post: Outpost) -> None:
    async def scene(engine: Engine) -> None:
        async with cutting_proxy(post.port) as proxy:
            proxy.every, proxy.pause = 7, 0.002
            work(post, "ann", server=proxy.url, slots=3)
            job = (await engine.jobs.submit("fan", {"pieces": 70})).job_id

            assert await ended(engine, job, within=60) == ["completed"]

        assert proxy.lost > 3
        assert await result(engine, job) == sum(range(70)) * 2
        done = await rows(engine, f"select task_id from attempt where job_id = {job} and outcome = 'done'")
        assert len(done) == len({row["task_id"] for row in done}) == 72

    play(post, scene)
