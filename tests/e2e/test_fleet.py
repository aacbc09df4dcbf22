"""Two minutes of film over three remote workers: one dies, one sleeps, one has a bad line, and their server dies, too.

All of them are real processes that share nothing but the network. At the end every frame is there, once. It is left to
the proof: one by one, the same happens to a shorter film in tests/fault/test_remote_film.py.
"""

import asyncio
import signal
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import psutil

from telecine.wiring import open_engine
from tests.fault.server_processes import Outpost, outpost
from tests.media.kills import lives, media_children
from tests.media.make_video import Film, Shot, Voice, shoot
from tests.media.transcode_env import Theatre, faults_of, numbers_of, small, until
from tests.support.audit import audit
from tests.support.flaky_proxy import cutting_proxy
from tests.support.thorough import thorough

# Two minutes, and no more of anything else: what is proven is that all of it comes through.
SECONDS, RATE, SEGMENT = 120, 6, 2
FRAMES = SECONDS * RATE
VOICE = Voice(channels=1, rate=16_000, hum=0)  # silence is encoded quickly
RUNGS = ("90p", "180p", "audio-1")
# The first server leases for as long as another one may need to come back on a busy machine, the second for a time
# that can be slept through.
LONG, SHORT = 60, 12
PATIENCE = 180.0
Holding = tuple[int, int]  # task and token


@thorough
def test_a_film_of_two_minutes_survives_what_happens_to_a_fleet(tmp_path: Path) -> None:
    film = shoot(tmp_path / "film.mp4", Film(shots=(Shot(count=FRAMES),), rate=Fraction(RATE), voices=(VOICE,)))

    async def scene(post: Outpost) -> None:
        async with fleet(post, film) as own:
            await own.kill_the_server()
            await own.kill("ann")
            await own.sleep_too_long("bob")
            await own.end()
            await own.check_the_history()
            await own.check_the_film()

    with outpost(tmp_path, f"sqlite:///{tmp_path}/telecine.db", lease_seconds=LONG) as post:
        post.serve()
        asyncio.run(asyncio.wait_for(scene(post), 2 * PATIENCE))


@dataclass
class Fleet:
    """Ann and Bob work nearby, Carol at the end of a slow line."""

    post: Outpost
    house: Theatre
    job: int

    async def kill_the_server(self) -> None:
        """While all are at work; it comes back before their leases end."""
        await until(self._all_work, "all three are at work", within=PATIENCE)
        server = self.post.server
        assert server is not None
        server.kill()
        server.wait()
        safe = {holding for name in self.post.workers for holding in await self._held(name)}
        silent = {name: await self._heard(name) for name in self.post.workers}
        await asyncio.to_thread(self.post.serve, lease_seconds=SHORT)

        async def all_are_back() -> bool:
            return all([await self._heard(name) > silent[name] for name in silent])

        await until(all_are_back, "all are heard of again", within=PATIENCE)
        held = {holding for name in self.post.workers for holding in await self._held(name)}
        outcomes = await self._outcomes()
        touched = {holding: outcomes.get(holding) for holding in safe - held if outcomes.get(holding) != "done"}
        assert safe
        assert touched == {}, "the server's death cost an attempt"

    async def kill(self, name: str) -> None:
        """With -9, in the middle of an encoding."""
        await self._stopped_at_work(name)
        worker = self.post.workers[name]
        children = media_children(worker.pid)
        worker.kill()
        worker.wait()

        async def childless() -> bool:
            return not any(lives(pid) for pid in children)

        await until(childless, f"the children of {name} are gone", within=20)

    async def sleep_too_long(self, name: str) -> None:
        held = await self._stopped_at_work(name)

        async def given_up() -> bool:
            return held <= set(await self._outcomes())

        await until(given_up, f"the lease of {name} has ended", within=PATIENCE)
        asleep = await self._heard(name)
        self.post.workers[name].send_signal(signal.SIGCONT)

        async def is_back() -> bool:
            return await self._heard(name) > asleep

        await until(is_back, f"{name} is heard of again", within=PATIENCE)

    async def end(self) -> None:
        await until(self._has_ended, "the film is done", within=PATIENCE)
        job = await self.house.views.job(self.job)
        assert job.status == "completed", job.error

    async def check_the_history(self) -> None:
        """One commit for each segment; nobody lost anything but the dead and the sleeping."""
        attempts = await self._attempts()
        others = {(row["name"], row["outcome"]) for row in attempts if row["outcome"] != "done"}
        done = [row["task_id"] for row in attempts if row["outcome"] == "done"]
        tasks = await self.house.sql(f"select id, state from task where job_id = {self.job}")
        told = Counter(row["task_id"] for row in await self._events("task.done") if row["job_id"] == self.job)
        pieces = await self.house.pieces(self.job)

        assert others == {("ann", "lost"), ("bob", "lost")}
        assert {row["state"] for row in tasks} <= {"done", "skipped"}
        assert sorted(done) == sorted(row["id"] for row in tasks if row["state"] == "done")
        assert told == Counter(done)
        assert len(await self._events("job.completed")) == 1
        assert sorted(pieces) == sorted((name, n) for name in RUNGS for n in range(SECONDS // SEGMENT))
        assert "carol" in {row["name"] for row in attempts if row["outcome"] == "done"}
        assert await self._events("audit.finding") == []
        assert await audit(self.house.sql) == []

    async def check_the_film(self) -> None:
        [shown] = await self.house.sql("select number, job_id, left_at from subject_version")
        folder = await self.house.exported(self.job)

        assert (shown["number"], shown["job_id"], shown["left_at"]) == (1, self.job, None)
        assert numbers_of(folder) == {"h264-90p": list(range(FRAMES)), "h264-180p": list(range(FRAMES))}
        assert faults_of(folder, self.house.folder / "readers") == []
        homes = {path.name for name in self.post.workers for path in self.post.folder.glob(f"home-{name}/*")}
        assert homes == {"scratch"}, "a remote worker needs nothing but a scratch folder"

    # -- who does what ------------------------------------------------------------------------------------------------

    async def _all_work(self) -> bool:
        held = [await self._held(name) for name in self.post.workers]
        return all(held) and len(await self.house.pieces(self.job)) > 0

    async def _stopped_at_work(self, name: str) -> set[Holding]:
        """Stop it while a child of it encodes; what it holds."""
        worker = self.post.workers[name]

        async def stopped() -> set[Holding]:
            assert not await self._has_ended(), f"nothing was left to take from {name}"
            if psutil.Process(worker.pid).status() != psutil.STATUS_STOPPED:
                worker.send_signal(signal.SIGSTOP)
                return set()  # what it said last may still be on its way
            held = await self._held(name)
            if held and any(lives(pid) for pid in media_children(worker.pid)):
                return held
            worker.send_signal(signal.SIGCONT)
            return set()

        found: set[Holding] = await until(stopped, f"{name} is at work", within=PATIENCE)
        return found

    async def _held(self, name: str) -> set[Holding]:
        rows = await self.house.sql(
            "select task.id, task.token from task join worker on worker.id = task.worker "
            f"where task.state = 'running' and worker.name = '{name}'"
        )
        return {(row["id"], row["token"]) for row in rows}

    async def _attempts(self) -> list[dict[str, Any]]:
        return await self.house.sql(
            "select task_id, token, outcome, worker.name from attempt left join worker on worker.id = attempt.worker "
            f"where job_id = {self.job}"
        )

    async def _outcomes(self) -> dict[Holding, str]:
        return {(row["task_id"], row["token"]): row["outcome"] for row in await self._attempts()}

    async def _heard(self, name: str) -> int:
        """When it last beat, if it has not left."""
        [row] = await self.house.sql(f"select beat_at from worker where name = '{name}' and gone_at is null")
        return int(row["beat_at"])

    async def _events(self, kind: str) -> list[dict[str, Any]]:
        await self.house.parts.engine.events.newest()  # numbers what has none yet
        return await self.house.sql(f"select job_id, task_id from event where kind = '{kind}'")

    async def _has_ended(self) -> bool:
        return bool(await self.house.sql(f"select 1 from job where id = {self.job} and ended_at is not null"))


@asynccontextmanager
async def fleet(post: Outpost, film: Path) -> AsyncIterator[Fleet]:
    """Three workers and a film that is on the server's disk only."""
    async with open_engine(post.settings) as parts, cutting_proxy(post.port) as line:
        line.pause = 0.005
        house = Theatre(parts, post.folder)
        job = await house.begun(small(film, segment_seconds=SEGMENT, chunk_segments=3, poster=True))
        for name, server in (("ann", None), ("bob", None), ("carol", line.url)):
            post.work(name, server=server)
        yield Fleet(post, house, job)
