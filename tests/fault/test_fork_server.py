"""A fork server is replaced when it should be, and whatever becomes of it costs at most the children it has."""

import asyncio
import errno
import os
import resource
import signal
import socket
import time
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

import psutil
import pytest

from telecine.errors import ChildFailed
from telecine.flow import MediaChild
from telecine.worker.media import fork_child, fork_server
from telecine.worker.media.fork_server import ForkServer
from tests.fault.child_fixture import DOUBLE, Stage, children, play
from tests.fault.worker_processes import lives, until


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    own = ForkServer(DOUBLE)
    yield Stage(tmp_path, own)
    asyncio.run(own.close())

    assert fork_servers() == []


def fork_servers() -> list[int]:
    """Of doubles: others have fork servers, too."""
    named = [one for one in psutil.Process().children() if one.name() == fork_child.FORK_SERVER]
    return [one.pid for one in named if one.status() == psutil.STATUS_ZOMBIE or DOUBLE in one.cmdline()]


async def parent_of_next(stage: Stage) -> int:
    seen = await stage.answer({"do": "look"})
    parent: int = seen["parent"]
    return parent


async def hanging(child: MediaChild) -> int:
    async for message in child:
        [pid] = message["family"]
        return int(pid)
    raise AssertionError("it said nothing")


def test_children_come_from_one_nursery_until_one_of_them_crashes(stage: Stage) -> None:
    async def scene() -> None:
        first = await parent_of_next(stage)
        await stage.failure({"do": "die", "code": 3})  # it fails, but in order
        await stage.failure({"do": "die", "signal": signal.SIGKILL})  # as a worker does, and the kernel

        assert await parent_of_next(stage) == first

        error = await stage.failure({"do": "die", "signal": signal.SIGSEGV})

        assert "was killed by SIGSEGV" in str(error)
        assert await parent_of_next(stage) != first
        await until(lambda: not lives(first))

    play(scene)


def test_a_folder_may_be_named_from_where_the_worker_stands(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    (stage.folder / "here").mkdir()
    monkeypatch.chdir(stage.folder)

    async def scene() -> None:
        seen = await stage.answer({"do": "look"}, folder=Path("here"))

        assert seen["folder"] == seen["environment"]["TMPDIR"] == str(stage.folder / "here")

    play(scene)


def test_a_nursery_bears_only_so_many(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fork_server, "MAX_FORKS", 2)

    async def scene() -> None:
        parents = [await parent_of_next(stage) for _ in range(5)]

        assert [parents.index(one) for one in parents] == [0, 0, 2, 2, 4]

    play(scene)


def test_a_nursery_that_is_left_lives_until_its_last_child_has_ended(stage: Stage) -> None:
    async def scene() -> None:
        async with stage.child({"do": "hang", "alone": True}) as child:
            pid = await hanging(child)
            await stage.failure({"do": "die", "signal": signal.SIGABRT})

            assert lives(pid)
            assert await parent_of_next(stage) != psutil.Process(pid).ppid()
            assert len(fork_servers()) == 2
        await until(lambda: len([one for one in fork_servers() if lives(one)]) == 1)

    play(scene)


def test_a_killed_nursery_takes_its_children_along_and_is_replaced(stage: Stage) -> None:
    async def scene() -> None:
        async with stage.child({"do": "hang", "alone": True, "stubborn": True}) as child:
            pid = await hanging(child)
            os.kill(psutil.Process(pid).ppid(), signal.SIGKILL)
            with pytest.raises(ChildFailed, match="was killed by SIGKILL"):
                await hanging(child)

        assert not lives(pid)
        assert await parent_of_next(stage)

    play(scene)


def test_a_nursery_that_is_stuck_holds_nobody(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fork_server, "LAST_SECONDS", 0.2)

    async def scene() -> None:
        async with stage.child({"do": "hang", "alone": True}) as child:
            pid = await hanging(child)
            stuck = psutil.Process(pid).ppid()
            assert stuck != os.getpid()
            os.kill(stuck, signal.SIGSTOP)

        assert not lives(pid)
        assert await parent_of_next(stage) != stuck
        assert not lives(stuck)

    play(scene)


def test_a_nursery_that_does_not_answer_is_done_without(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    async def scene() -> None:
        stuck = await parent_of_next(stage)
        assert stuck != os.getpid()  # else we would stop ourselves
        monkeypatch.setattr(fork_server, "FORK_SECONDS", 0.3)
        os.kill(stuck, signal.SIGSTOP)

        assert await parent_of_next(stage) == os.getpid()  # started as a program
        monkeypatch.undo()
        assert await parent_of_next(stage) not in (stuck, os.getpid())

    play(scene)


def test_a_child_that_was_born_while_the_loop_stood_still_is_taken(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scene() -> None:
        parent = await parent_of_next(stage)
        monkeypatch.setattr(fork_server, "FORK_SECONDS", 0.2)
        asking = asyncio.create_task(parent_of_next(stage))
        await asyncio.sleep(0)
        time.sleep(0.5)

        assert await asking == parent

    play(scene)


def test_a_program_that_cannot_be_loaded_is_started_so_that_it_says_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = ForkServer("telecine.nowhere")
    stage = Stage(tmp_path, own)

    async def one() -> None:
        error = await stage.failure({"do": "look"}, program="telecine.nowhere")

        assert "No module named telecine.nowhere" in str(error)

    async def scene() -> None:
        await asyncio.gather(*(one() for _ in range(2 * fork_server.MAX_FAILED)))
        assert own.can_fork_for("telecine.nowhere")  # many asked, but only one fork server has failed

        for _ in range(fork_server.MAX_FAILED - 1):
            await one()
        assert not own.can_fork_for("telecine.nowhere")  # nobody tries for a while
        await one()

        monkeypatch.setattr(fork_server, "REST_SECONDS", 0.0)
        own._rests_until = 0.0
        await one()
        assert own.can_fork_for("telecine.nowhere")
        await own.close()
        assert not own.can_fork_for("telecine.nowhere")

    play(scene)


# -- What is wrong with one birth harms no other child ----------------------------------------------


async def lives_on(stage: Stage, trouble: Callable[[], Awaitable[None]]) -> None:
    """A child, and its fork server, are there before and after."""
    async with stage.child({"do": "hang", "alone": True}) as child:
        pid = await hanging(child)
        parent = psutil.Process(pid).ppid()

        await trouble()

        assert lives(pid)
        assert await parent_of_next(stage) == parent


def test_a_descriptor_that_is_none_harms_no_other_child(stage: Stage) -> None:
    async def trouble() -> None:
        error = await stage.failure({"do": "look"}, files={"source": 9_999})

        assert error.code in ("child_not_started", "child_died")

    play(lambda: lives_on(stage, trouble))


def test_a_child_with_more_files_than_can_be_handed_on_is_started(stage: Stage) -> None:
    files = {f"file{n}": os.open(os.devnull, os.O_RDONLY) for n in range(fork_server.MAX_FILES + 1)}

    async def trouble() -> None:
        seen = await stage.answer({"do": "look"}, files=files)

        assert (seen["parent"], seen["passed"]) == (os.getpid(), files)
        files.popitem()
        seen = await stage.answer({"do": "look"}, files=files)
        assert seen["parent"] != os.getpid()
        assert seen["files"] == [0, 1, 2, 3, *seen["passed"].values()]

    play(lambda: lives_on(stage, trouble))


def test_a_fork_that_fails_is_told_and_leaks_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_fork() -> int:
        raise BlockingIOError(errno.EAGAIN, "no more processes")

    monkeypatch.setattr(os, "fork", no_fork)
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    given = [os.open(os.devnull, os.O_RDONLY), os.open(os.devnull, os.O_RDONLY), theirs.detach()]
    reports: dict[int, socket.socket] = {}

    fork_child._fork({"folder": "/", "nice": 0}, list(given), reports, lambda _: 0)

    with ours:
        assert b"no more processes" in ours.recv(256)
        assert ours.recv(256) == b""
    assert reports == {}
    for one in given:
        with pytest.raises(OSError, match="Bad file descriptor"):
            os.fstat(one)


def test_descriptors_may_have_high_numbers(stage: Stage) -> None:
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(most, 4_096), most))
    held = [os.open(os.devnull, os.O_RDONLY) for _ in range(1_100)]
    try:

        async def scene() -> None:
            assert await parent_of_next(stage) in fork_servers()

        play(scene)
    finally:
        for one in held:
            os.close(one)
        resource.setrlimit(resource.RLIMIT_NOFILE, before)


def test_an_interpreter_without_handles_of_processes_starts_its_children(monkeypatch: pytest.MonkeyPatch) -> None:
    fork_server.can_fork.cache_clear()
    assert fork_server.can_fork()

    monkeypatch.delattr(os, "pidfd_open")
    fork_server.can_fork.cache_clear()

    assert not fork_server.can_fork()
    fork_server.can_fork.cache_clear()


def test_a_handler_that_is_cancelled_while_its_child_is_born_leaves_none(stage: Stage) -> None:
    async def scene() -> None:
        await parent_of_next(stage)

        async def one() -> None:
            async with stage.child({"do": "hang", "alone": True}) as child:
                await hanging(child)

        for turns in range(12):
            task = asyncio.create_task(one())
            for _ in range(turns):
                await asyncio.sleep(0)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
        await until(lambda: not children())

    play(scene)
