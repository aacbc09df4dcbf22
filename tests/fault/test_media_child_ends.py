"""A media child never outlives the block that it was started for, and leaves nothing behind."""

import asyncio
import gc
import os
import signal
import threading
import time

import pytest

from telecine.flow import MediaChild
from tests.fault.child_fixture import TERM, Stage, children, play
from tests.fault.worker_processes import lives, until


async def family_of(child: MediaChild) -> list[int]:
    async for message in child:
        found: list[int] = message["family"]
        return found
    return []


@pytest.mark.parametrize("stubborn", [False, True])
def test_leaving_the_block_early_ends_the_child_and_its_children(stage: Stage, stubborn: bool) -> None:
    async def scene() -> None:
        async with stage.child({"do": "hang", "stubborn": stubborn}) as child:
            family = await family_of(child)
            assert all(lives(pid) for pid in family)

        assert not lives(family[0])
        await until(lambda: not [pid for pid in family if lives(pid)], within=2.0)
        assert stage.step[2]["exit_code"] == (-signal.SIGKILL if stubborn else -signal.SIGTERM)

    play(scene)


def test_an_exception_in_the_block_ends_the_child_and_goes_on(stage: Stage) -> None:
    async def scene() -> None:
        family: list[int] = []

        async def handler() -> None:
            async with stage.child({"do": "hang", "stubborn": True}) as child:
                family.extend(await family_of(child))
                raise KeyError

        with pytest.raises(KeyError):
            await handler()
        assert not lives(family[0])

    play(scene)


@pytest.mark.parametrize("times", [1, 3])
def test_a_cancelled_handler_leaves_no_child(stage: Stage, times: int) -> None:
    """Whoever cancels again is in a hurry: then there is no patience for TERM."""

    async def scene() -> None:
        family: list[int] = []
        began = asyncio.Event()

        async def handler() -> None:
            async with stage.child({"do": "hang", "stubborn": True}, term=10.0 if times > 1 else TERM) as child:
                family.extend(await family_of(child))
                began.set()
                async for _ in child:
                    pass

        task = asyncio.ensure_future(handler())
        await began.wait()
        asked = time.monotonic()
        for _ in range(times):
            task.cancel()
            await asyncio.sleep(0.05)
        with pytest.raises(asyncio.CancelledError):
            await task

        assert time.monotonic() - asked < 5.0
        assert not lives(family[0])
        assert stage.family == set()

    play(scene)


def test_a_child_that_does_not_go_after_its_last_word_is_ended(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("telecine.worker.media.media_child.LAST_SECONDS", 0.2)

    async def scene() -> None:
        pid = await stage.answer({"do": "linger"})

        assert not lives(pid)

    play(scene)


def test_many_children_leave_no_descriptor_no_thread_and_no_process(stage: Stage) -> None:
    async def read(start: int, length: int) -> bytes:
        return b"0123456789"

    async def scene() -> None:
        async def one(number: int) -> None:
            match number % 4:
                case 0:
                    await stage.answer({"do": "copy", "size": 20}, source=read)
                case 1:
                    await stage.failure({"do": "die", "code": 1})
                case 2:
                    await stage.failure({"do": "babble", "text": "?"})
                case _:
                    async with stage.child({"do": "hang"}) as child:
                        await family_of(child)

        await one(0)
        before = descriptors()
        await asyncio.gather(*(one(number) for number in range(8)))
        await until(lambda: not [one for one in threading.enumerate() if one.name.startswith("telecine-media")])
        gc.collect()

        assert descriptors() == before
        assert children() == []
        assert len([words for words in stage.said if words[2] == "step"]) == 9

    play(scene)


def descriptors() -> set[str]:
    return set(os.listdir("/proc/self/fd"))
