"""The bell of a SQLite file listens instead of looking, and looks where it cannot listen."""

import asyncio
import os
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from telecine.dispatch import sqlite as module
from telecine.dispatch.inotify import FileListener
from telecine.dispatch.sqlite import COVERED_SECONDS, MAX_MISSED, SqliteBell

LONG = 20.0


@pytest.fixture
def file(tmp_path: Path) -> Iterator[Path]:
    path = tmp_path / "bell.db"
    with closing(made(path)):
        yield path


def made(path: Path) -> sqlite3.Connection:
    """A database whose log is there for as long as this connection is."""
    connection = sqlite3.connect(path)
    connection.execute("pragma journal_mode = wal")
    connection.execute("create table mark (n integer)")
    return connection


def commit(file: Path) -> None:
    with closing(sqlite3.connect(file)) as other, other:
        other.execute("insert into mark values (1)")


class Counting(SqliteBell):
    """A bell that says how often it looked, and how often it heard something."""

    looks = sounds = 0

    def _changed(self, now: float) -> bool:
        self.looks += 1
        return super()._changed(now)

    def _hear(self) -> None:
        self.sounds += 1
        super()._hear()


class Whistle(FileListener):
    """An ear that hears nothing but a whistle."""

    def __init__(self) -> None:
        descriptor, self.mouth = os.pipe()
        os.set_blocking(descriptor, False)
        super().__init__(descriptor, Path(), 0)

    def heard(self) -> bool:
        try:
            return bool(os.read(self.descriptor, 1))
        except BlockingIOError:
            return False


async def idle(bell: SqliteBell) -> SqliteBell:
    """As it is when nothing has happened for long."""
    await bell.wait(0.01)
    bell._heard_at = bell._seen_at = -1_000_000.0
    return bell


def play(story: object) -> None:
    asyncio.run(asyncio.wait_for(story, LONG))  # type: ignore[arg-type]


async def idle_then_woken(bell: SqliteBell) -> None:
    await woken(await idle(bell))


async def woken(bell: SqliteBell) -> None:
    async with asyncio.timeout(LONG / 4):
        await bell.wait(LONG)


def after(seconds: float, what: object, *arguments: object) -> None:
    asyncio.get_running_loop().call_later(seconds, what, *arguments)  # type: ignore[arg-type]


def test_who_listens_hardly_looks(file: Path) -> None:
    async def story() -> None:
        bell = await idle(Counting(file))
        assert isinstance(bell, Counting)
        before = bell.looks
        await bell.wait(1.0)
        await bell.close()
        assert bell.looks - before <= 6

    play(story())


def test_a_commit_is_heard_long_before_the_next_look(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LISTENING_LOOK", LONG)

    async def story() -> None:
        bell = await idle(SqliteBell(file))
        assert bell._ear is not None
        after(0.02, commit, file)
        await woken(bell)
        await bell.close()

    play(story())


def test_a_commit_that_is_to_be_seen_long_after_it_was_heard_is_waited_for(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A disk may take its time between the two."""
    monkeypatch.setattr(module, "LISTENING_LOOK", LONG)
    ear = Whistle()
    monkeypatch.setattr(FileListener, "at", lambda path: ear)

    async def story() -> None:
        bell = await idle(SqliteBell(file))
        others = [asyncio.create_task(idle_then_woken(bell)) for _ in range(3)]  # they do not use up its patience
        await asyncio.sleep(0.05)
        after(0.02, os.write, ear.mouth, b"!")
        after(0.6, commit, file)
        await woken(bell)
        await asyncio.gather(*others)
        await bell.close()

    play(story())
    os.close(ear.mouth)


def test_what_was_written_while_nobody_waited_is_seen_at_once(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LISTENING_LOOK", LONG)

    async def story() -> None:
        bell = await idle(SqliteBell(file))
        commit(file)
        await woken(bell)
        await bell.close()

    play(story())


def test_somebody_who_writes_all_the_time_wakes_nobody_all_the_time(file: Path) -> None:
    async def story() -> None:
        bell = await idle(Counting(file))
        assert isinstance(bell, Counting)
        writing = asyncio.create_task(asyncio.to_thread(busy, file, 0.5))
        clock = asyncio.get_running_loop().time
        begun = clock()
        while not writing.done():
            await bell.wait(0.2)
        taken = clock() - begun
        await bell.close()
        assert 0 < bell.sounds <= taken / COVERED_SECONDS + 2

    play(story())


def busy(file: Path, seconds: float) -> None:

    with closing(sqlite3.connect(file, isolation_level=None)) as other:
        other.execute("pragma synchronous = off")
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            other.execute("insert into mark values (1)")


def test_whose_ear_hears_nothing_looks_as_often_as_without(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ear = Whistle()
    monkeypatch.setattr(FileListener, "at", lambda path: ear)

    async def story() -> None:
        bell = SqliteBell(file)
        for _ in range(MAX_MISSED):
            await idle(bell)
            assert bell._ear is ear
            after(0.02, commit, file)
            await woken(bell)
        assert bell._ear is None
        await idle(bell)
        assert bell._ear is None, "once deaf, it does not listen again"
        assert bell._pause(asyncio.get_running_loop().time()) == module.IDLE_LOOK
        await bell.close()

    play(story())
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(ear.descriptor)
    os.close(ear.mouth)


def test_what_was_heard_is_not_taken_for_missed(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LISTENING_LOOK", 0.05)

    async def story() -> None:
        bell = SqliteBell(file)
        for _ in range(2 * MAX_MISSED):
            await idle(bell)
            after(0.02, commit, file)
            await woken(bell)
        assert bell._ear is not None
        assert bell._missed == 0
        await bell.close()

    play(story())


@pytest.mark.parametrize("reason", ["no ear", "no reader"])
def test_where_nobody_can_listen_it_looks(file: Path, monkeypatch: pytest.MonkeyPatch, reason: str) -> None:
    def refused(*_: object) -> None:
        raise OSError("no space left on device")

    async def story() -> None:
        if reason == "no ear":
            monkeypatch.setattr(FileListener, "at", lambda path: None)
        else:
            monkeypatch.setattr(asyncio.get_running_loop(), "add_reader", refused)
        bell = await idle(SqliteBell(file))
        assert bell._ear is None
        after(0.02, commit, file)
        await woken(bell)
        await bell.close()

    play(story())


def test_nothing_is_left_open_by_a_bell_that_is_taken_down_while_somebody_waits(file: Path) -> None:
    async def story() -> None:
        bell = SqliteBell(file)
        waiting = asyncio.create_task(idle_then_woken(bell))
        await asyncio.sleep(0.1)
        assert not waiting.done()
        assert bell._ear is not None
        descriptor = bell._ear.descriptor
        await bell.close()
        await waiting
        await bell.wait(0.01)
        assert not asyncio.get_running_loop().remove_reader(descriptor)

    before = ears()
    play(story())
    assert ears() == before


def test_nobody_listens_between_two_waits(file: Path) -> None:
    async def story() -> None:
        bell = await idle(SqliteBell(file))
        assert bell._ear is not None
        assert not asyncio.get_running_loop().remove_reader(bell._ear.descriptor)
        await bell.close()

    play(story())


def ears() -> int:
    found = [Path("/proc/self/fd") / name for name in os.listdir("/proc/self/fd")]
    return sum(path.is_symlink() and "inotify" in os.readlink(path) for path in found)


def test_a_file_that_was_taken_away_and_made_anew_is_heard_again(tmp_path: Path) -> None:
    path = tmp_path / "bell.db"

    async def story() -> None:
        with closing(made(path)):
            bell = await idle(SqliteBell(path))
            for name in ("bell.db", "bell.db-wal", "bell.db-shm"):
                (tmp_path / name).unlink()
        with closing(made(path)):
            await bell.wait(0.5)
            await idle(bell)
            assert bell._ear is not None
            after(0.02, commit, path)
            await woken(bell)
        await bell.close()

    play(story())


def test_a_link_is_followed_to_the_file(tmp_path: Path) -> None:
    (tmp_path / "far").mkdir()
    (tmp_path / "link.db").symlink_to(tmp_path / "far" / "real.db")

    async def story() -> None:
        bell = await idle(SqliteBell(tmp_path / "link.db"))
        assert bell._ear is not None
        await bell.close()

    with closing(made(tmp_path / "far" / "real.db")):
        play(story())
