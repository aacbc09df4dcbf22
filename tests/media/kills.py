"""Kill workers and their media children at random moments, and see what is left of the work.

The film is encoded slowly on purpose, so that every moment of the encoding can be hit. Shared with the proof.
"""

from __future__ import annotations

import asyncio
import math
import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections import Counter
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

import asyncpg
import psutil

from telecine.settings import Settings
from telecine.worker.media import fork_child
from tests.media.make_video import Film, Shot, shoot
from tests.media.transcode_env import LADDER, Theatre, faults_of, numbers_of, small, until

PROGRAM = Path(sys.executable).parent / "telecine"
FRAMES = 756  # more than a fast machine makes while it waits for all kills
PER_SEGMENT = 24
SLOTS = 2
# Each twice: a task may fail three times before it is given up, and whoever kills its child makes it fail.
WHOM = ("worker", "child", "both") * 2


def long_film(path: Path, frames: int = FRAMES) -> Path:
    return shoot(path, Film(shots=(Shot(count=frames),), options={"x264-params": "keyint=25:bframes=2"}))


def slowly(film: Path) -> dict[str, object]:
    return small(film, preset="veryslow", chunk_segments=5, ladder=LADDER)


@dataclass
class Killer:
    """Starts workers, kills them, and counts what each kill has cost."""

    house: Theatre
    dice: Random
    worker: subprocess.Popen[bytes] | None = None
    lost: list[int] = field(default_factory=list)  # closed segments that were lost, by kill, running chunk and rung
    recorded: dict[tuple[str, int], str] = field(default_factory=dict)  # the keys of all that was there at a kill

    @property
    def settings(self) -> Settings:
        return self.house.parts.settings

    def start(self) -> subprocess.Popen[bytes]:
        """A worker process on the theatre's database, with leases that a test can outlive."""
        own = {
            "DATABASE_URL": self.settings.database_url, "ARTIFACTS_URL": self.settings.artifacts_url,
            "SCRATCH": self.settings.scratch, "SLOTS": SLOTS, "LEASE_SECONDS": 3, "BEAT_SECONDS": 0.5,
            "SWEEP_SECONDS": 0.2, "POLL_SECONDS": 0.1,
            "MEDIA_NICE": 19,  # whoever kills must come in time, also on a busy machine
        }  # fmt: skip
        environ = {name: value for name, value in os.environ.items() if not name.startswith("TELECINE_")}
        with (self.house.folder / "worker.log").open("ab") as log:
            self.worker = subprocess.Popen(
                [PROGRAM, "worker"], env={**environ, **{f"TELECINE_{name}": str(value) for name, value in own.items()}},
                cwd=self.house.folder, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
            )  # fmt: skip
        return self.worker

    def end(self) -> None:
        if self.worker is not None and self.worker.poll() is None:
            self.worker.kill()
            self.worker.wait()

    async def kill_at_random(self, job_id: int, whom: str) -> None:
        """Wait for a random moment of the encoding, then kill."""
        worker = self.worker if self.worker is not None and self.worker.poll() is None else self.start()
        await self._encodes(job_id, worker, len(self.recorded) + self.dice.randint(0, 2))
        await asyncio.sleep(self.dice.random() * 0.3)
        if whom != "child":
            await self._no_last_chance(worker)
        children = media_children(worker.pid)
        self.recorded |= {place: str(one.kept.key) for place, one in (await self.house.pieces(job_id)).items()}
        if whom != "child":
            worker.kill()
        if whom != "worker" and children:
            kill(self.dice.choice(children))
        if whom != "child":
            worker.wait()
            await none_left(children)
            await self._count(job_id)

    async def _encodes(self, job_id: int, worker: subprocess.Popen[bytes], goal: int) -> None:
        """Until there are so many segments and a child is at work."""

        async def there() -> bool:
            await self.house.hurry()
            job = await self.house.views.job(job_id)
            assert job.ended_at is None, f"the job was {job.status} before all were killed: {job.error}"
            assert worker.poll() is None, "the worker ended by itself"
            return len(await self.house.pieces(job_id)) >= goal and bool(media_children(worker.pid))

        await until(there, f"job {job_id} has {goal} segments")

    async def _no_last_chance(self, worker: subprocess.Popen[bytes]) -> None:
        """Stop the worker where it holds no task that was lost twice without news: a third time is quarantine, rightly.

        It stays stopped, so that it claims no such task between this look and its death.
        """

        async def stopped() -> bool:
            worker.send_signal(signal.SIGSTOP)
            if weak := await self._lost_twice():
                worker.send_signal(signal.SIGCONT)
            return not weak

        await until(stopped, "the worker holds nothing that was lost twice")

    async def _lost_twice(self) -> bool:
        """Read only: whoever was stopped may have been writing."""
        url, asked = self.settings.database_url, "select id from task where state = 'running' and losses > 1"
        if url.startswith("postgres"):
            connection = await asyncpg.connect(url)
            try:
                return bool(await connection.fetch(asked))
            finally:
                await connection.close()
        with closing(sqlite3.connect(url.removeprefix("sqlite:///"))) as database:
            return bool(database.execute(asked).fetchall())

    async def _count(self, job_id: int) -> None:
        """What lay there closed and unrecorded when the worker died."""
        recorded = {f"{rung}-{number:05d}.m4s" for rung, number in await self.house.pieces(job_id)}
        for folder in {path.parent for kind in ("m4s", "part") for path in self.settings.scratch.rglob(f"*p-*.{kind}")}:
            for rung in ("90p", "180p"):
                closed = [path for path in folder.glob(f"{rung}-*.m4s") if path.name not in recorded]
                self.lost.append(len(closed))


def media_children(pid: int) -> list[int]:
    """The media children of a process."""
    found = []
    for child in psutil.Process(pid).children(recursive=True):
        try:
            if child.name() == fork_child.CHILD:
                found.append(child.pid)
        except psutil.NoSuchProcess:
            continue
    return found


def kill(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return  # it was done already, or died with its worker


async def none_left(children: list[int], within: float = 1.0) -> None:
    deadline = time.monotonic() + within
    while left := [pid for pid in children if lives(pid)]:
        assert time.monotonic() < deadline, f"{left} outlived their worker"
        await asyncio.sleep(0.01)


def lives(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state not in "ZX"


async def killed_again_and_again(house: Theatre, film: Path, *, kills: int, seed: int) -> tuple[int, Killer]:
    """Make one film while somebody is killed so many times; its job and what it cost."""
    killer = Killer(house, Random(seed))
    victims = list(WHOM)
    killer.dice.shuffle(victims)
    job_id = await house.begun(slowly(film), again=True)
    try:
        for whom in victims[:kills]:
            await killer.kill_at_random(job_id, whom)
        if killer.worker is None or killer.worker.poll() is not None:
            killer.start()
        await _finished(house, job_id)
    finally:
        killer.end()
    print(f"seed {seed}: killed {', '.join(victims[:kills])}; closed segments lost, by chunk and rung: {killer.lost}")
    return job_id, killer


async def _finished(house: Theatre, job_id: int) -> None:
    async def ended() -> bool:
        await house.hurry()
        return (await house.views.job(job_id)).ended_at is not None

    await until(ended, f"job {job_id} has ended", within=120)


async def check(house: Theatre, job_id: int, killer: Killer, frames: int = FRAMES) -> None:
    """Everything that must hold, however often somebody was killed."""
    job = await house.views.job(job_id)
    assert job.status == "completed", job.error
    pieces = await house.pieces(job_id)
    segments = math.ceil(frames / PER_SEGMENT)
    assert sorted(pieces) == sorted((name, n) for name in ("90p", "180p", "audio-1") for n in range(segments))
    # What was recorded before a kill is never made again.
    assert {place: pieces[place].kept.key for place in killer.recorded} == killer.recorded
    # And of what was not, an attempt has lost at most one closed segment of each rung: in its scratch, or stored.
    assert max(killer.lost, default=0) <= 1
    assert max(_strays(house, job_id, {str(one.kept.key) for one in pieces.values()}).values(), default=0) <= 1
    folder = await house.exported(job_id, f"out-{job_id}")
    assert numbers_of(folder) == {"h264-90p": list(range(frames)), "h264-180p": list(range(frames))}
    assert faults_of(folder, house.folder / "readers") == []


def _strays(house: Theatre, job_id: int, recorded: set[str]) -> Counter[str]:
    """Segments that were stored but not recorded, by attempt and rung."""
    root = Path(house.parts.settings.artifacts_url)
    stored = (str(path.relative_to(root)) for path in (root / str(job_id)).rglob("*.m4s"))
    return Counter(key.rpartition("/")[0] for key in stored if key not in recorded)
