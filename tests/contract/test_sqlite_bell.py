"""The bell of a SQLite file listens instead of looking, and looks where it cannot listen."""

import asyncio
import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from telecine.dispatch import sqlite as module
from telecine.dispatch.inotify import Ear
from telecine.dispatch.sqlite import HEARD_LOOKS, MOST_MISSED, SqliteBell

LONG = 20.0


@pytest.fixture
def file(tmp_path: Path) -> Iterator[Path]:
    path = tmp_path / "bell.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("pragma journal_mode = wal")
        connection.execute("create table mark (n integer)")
        yield path


def commit(file: Path) -> None:
    with closing(sqlite3.connect(file)) as other, other:
        other.execute("insert into mark values (1)")


class Counting(SqliteBell):
    """A bell that says how often it looked."""

    looks = 0

    def _changed(self) -> bool:
        self.looks += 1
        return super()._changed()


async def settled(bell: SqliteBell) -> None:
    """Until it has looked closely for as long as it does after news."""
    while bell._quiet < HEARD_LOOKS:
        await bell.wait(0.05)


def test_who_listens_hardly_looks(file: Path) -> None:
    async def play() -> int:
        bell = Counting(file)
        await settled(bell)
        before = bell.looks
        await bell.wait(1.0)
        await bell.close()
        return bell.looks - before

    assert asyncio.run(play()) <= 6


def test_a_commit_is_heard_long_before_the_next_look(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LISTENING_LOOK", LONG)

    async def play() -> None:
        bell = SqliteBell(file)
        await settled(bell)
        asyncio.get_running_loop().call_later(0.02, commit, file)
        async with asyncio.timeout(LONG / 4):
            await bell.wait(LONG)
        await bell.close()

    asyncio.run(play())


def test_what_was_written_while_nobody_waited_is_seen_at_once(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LISTENING_LOOK", LONG)

    async def play() -> None:
        bell = SqliteBell(file)
        await settled(bell)
        commit(file)
        async with asyncio.timeout(LONG / 4):
            await bell.wait(LONG)
        await bell.close()

    asyncio.run(play())


def test_whose_ear_hears_nothing_looks_as_often_as_without(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    silent, other = os.pipe()
    os.set_blocking(silent, False)
    monkeypatch.setattr(Ear, "at", lambda path: Ear(silent, b""))

    async def play() -> SqliteBell:
        bell = SqliteBell(file)
        for _ in range(MOST_MISSED):
            await settled(bell)
            asyncio.get_running_loop().call_later(0.02, commit, file)
            async with asyncio.timeout(LONG / 4):
                await bell.wait(LONG)
        assert bell._ear is None
        await bell.wait(0.01)
        assert bell._ear is None, "once deaf, it does not listen again"
        assert bell._pause() <= module.IDLE_LOOK
        await bell.close()
        return bell

    asyncio.run(play())
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(silent)
    os.close(other)


def test_where_there_is_no_ear_it_looks(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Ear, "at", lambda path: None)

    async def play() -> None:
        bell = SqliteBell(file)
        await settled(bell)
        asyncio.get_running_loop().call_later(0.02, commit, file)
        async with asyncio.timeout(LONG / 4):
            await bell.wait(LONG)
        await bell.close()

    asyncio.run(play())


def test_no_ear_is_left_open(file: Path) -> None:
    async def play() -> None:
        bell = SqliteBell(file)
        waiting = asyncio.ensure_future(bell.wait(LONG))
        await asyncio.sleep(0.02)
        await bell.close()
        await waiting
        await bell.wait(0.01)

    before = ears()
    asyncio.run(play())
    assert ears() == before


def ears() -> int:
    found = [Path("/proc/self/fd") / name for name in os.listdir("/proc/self/fd")]
    return sum(path.is_symlink() and "inotify" in os.readlink(path) for path in found)


def test_an_ear_hears_the_file_and_what_bears_its_name_and_no_other(tmp_path: Path) -> None:
    file = tmp_path / "one.db"
    ear = Ear.at(file)
    assert ear is not None
    try:
        assert not ear.heard()
        (tmp_path / "other.db").write_text("x")
        assert not ear.heard()
        (tmp_path / "one.db-wal").write_text("x")
        assert ear.heard()
        assert not ear.heard()
        file.write_text("x")
        assert ear.heard()
    finally:
        ear.close()


def test_a_link_is_followed_to_the_file(tmp_path: Path) -> None:
    (tmp_path / "far").mkdir()
    (tmp_path / "link.db").symlink_to(tmp_path / "far" / "real.db")
    ear = Ear.at(tmp_path / "link.db")
    assert ear is not None
    try:
        (tmp_path / "far" / "real.db-wal").write_text("x")
        assert ear.heard()
    finally:
        ear.close()


def test_there_is_no_ear_for_a_folder_that_is_not_there(tmp_path: Path) -> None:
    assert Ear.at(tmp_path / "away" / "one.db") is None
