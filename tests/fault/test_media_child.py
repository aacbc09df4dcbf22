"""A media child does what it is told, and whatever becomes of it is said in one sentence."""

import asyncio
import os
import signal
from typing import Any

import pytest

from telecine.flow import MediaChild
from tests.fault.child_fixture import DOUBLE, Stage, children, play

# -- Talk ------------------------------------------------------------------------------------------


def test_lines_of_many_megabytes_go_both_ways_in_order(stage: Stage) -> None:
    async def scene() -> None:
        words: list[Any] = [{"n": 1}, "x" * 5_000_000, {"ä": [None, 1.5]}, list(range(500_000))]

        async with stage.child({"do": "echo"}) as child:
            saying = asyncio.ensure_future(say_all(child, [*words, "enough"]))
            heard = [message async for message in child]
            await saying

        assert heard == [*({"echo": word} for word in words), {"done": 4}]

    play(scene)


async def say_all(child: MediaChild, words: list[Any]) -> None:
    for word in words:
        await child.say(word)


def test_a_child_inherits_its_files_and_nothing_else(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    monkeypatch.setenv("PYTHONPATH", "/somewhere")
    leaked = os.open("/dev/null", os.O_RDONLY)
    os.set_inheritable(leaked, True)
    source = os.open("/dev/zero", os.O_RDONLY)

    async def scene() -> None:
        seen = await stage.answer({"do": "look"}, files={"source": source}, nice=5)

        assert seen["files"] == sorted([0, 1, 2, seen["channel"], seen["passed"]["source"]])
        assert seen["passed"] == {"source": source if stage.nursery is None else 4}
        allowed = {"LANG", "TMPDIR", "LD_LIBRARY_PATH", "GLIBC_TUNABLES", "LC_CTYPE"}
        assert set(seen["environment"]) <= allowed
        assert (seen["environment"]["LANG"], seen["folder"]) == ("C.UTF-8", str(stage.folder))
        assert (seen["session"], seen["nice"], seen["isolated"], seen["stdin"]) == (True, 5, 1, "/dev/null")
        assert seen["handlers"] == [True, True]

    try:
        play(scene)
    finally:
        os.close(leaked)
        os.close(source)


def test_a_source_may_be_a_descriptor_or_be_asked_for_in_ranges(stage: Stage) -> None:
    content = bytes(range(65, 91)) * 3
    path = stage.folder / "source"
    path.write_bytes(content)

    async def read(start: int, length: int) -> bytes:
        await asyncio.sleep(0)
        return content[start : start + length]

    async def scene() -> None:
        handle = os.open(path, os.O_RDONLY)
        try:
            inherited = await stage.answer({"do": "copy"}, files={"source": handle})
        finally:
            os.close(handle)
        asked = await stage.answer({"do": "copy", "size": len(content)}, source=read)

        assert inherited == asked == content.decode()

    play(scene)


def test_a_source_that_fails_hangs_up_and_says_why(stage: Stage) -> None:
    async def read(start: int, length: int) -> bytes:
        if start:
            raise OSError("the disk is on fire")
        return bytes(length)

    async def scene() -> None:
        failure = await stage.failure({"do": "copy", "size": 100}, source=read)

        assert (failure.code, failure.permanent) == ("source_failed", False)
        assert ("the source could not be read: OSError: the disk is on fire", "warning", "log", {}) in stage.said

    play(scene)


# -- Ends ------------------------------------------------------------------------------------------


def test_an_error_of_the_child_is_raised_as_it_said_it(stage: Stage) -> None:
    async def scene() -> None:
        error = {"code": "no_video", "message": "there is no picture in it", "permanent": True}
        failure = await stage.failure({"do": "refuse", "error": error})

        assert (str(failure), failure.code, failure.permanent) == ("there is no picture in it", "no_video", True)

    play(scene)


DEATHS: dict[str, tuple[dict[str, Any], str, str]] = {
    "exit code": ({"code": 3}, "child_died", "ended with exit code 3 and without a last word"),
    "no last word": ({"code": 0}, "child_died", "ended with exit code 0 and without a last word"),
    "signal": ({"signal": int(signal.SIGSEGV)}, "child_died", "was killed by SIGSEGV"),
    "killed": ({"signal": int(signal.SIGKILL)}, "child_died", "SIGKILL, as the kernel does when memory is short"),
    "output": ({"code": 1, "printed": "one\ntwo\n"}, "child_died", "; its last output: one | two"),
    "tail": ({"code": 1, "printed": "x" * 100_000 + "\nthe end"}, "child_died", "x | the end"),
}


@pytest.mark.parametrize(("how", "code", "words"), DEATHS.values(), ids=DEATHS)
def test_a_death_without_a_last_word_is_told_in_one_sentence(
    stage: Stage, how: dict[str, Any], code: str, words: str
) -> None:
    async def scene() -> None:
        failure = await stage.failure({"do": "die", **how})

        assert (failure.code, failure.permanent) == (code, False)
        assert words in str(failure)
        assert "\n" not in str(failure)
        assert len(str(failure)) < 1_000

    play(scene)


def test_a_memory_limit_is_named_when_it_is_hit(stage: Stage) -> None:
    async def scene() -> None:
        limit = 400 << 20
        failure = await stage.failure({"do": "gorge", "limits": {"memory": limit}})

        assert failure.code == "out_of_memory"
        assert f"it hit its memory limit of {limit} bytes" in str(failure)

    play(scene)


def test_a_limit_of_processor_time_is_named_when_it_is_hit(stage: Stage) -> None:
    async def scene() -> None:
        failure = await stage.failure({"do": "burn"})

        assert failure.code == "cpu_limit"
        assert "reached its limit of processor time" in str(failure)

    play(scene)


@pytest.mark.parametrize("text", ["no JSON", "[1, 2]", '{"half": '])
def test_a_child_that_babbles_is_ended(stage: Stage, text: str) -> None:
    async def scene() -> None:
        failure = await stage.failure({"do": "babble", "text": text})

        assert failure.code == "garbled"
        assert children() == []

    play(scene)


def test_a_program_that_is_not_there_is_an_exit_with_its_reason(stage: Stage) -> None:
    async def scene() -> None:
        failure = await stage.failure({}, program="telecine.media.nothing")
        missing = await stage.failure({}, folder=stage.folder / "nowhere")

        assert "No module named telecine.media.nothing" in str(failure)
        assert missing.code == "child_not_started"

    play(scene)


# -- The record ------------------------------------------------------------------------------------


def test_a_step_says_what_was_run_how_it_ended_and_what_it_used(stage: Stage) -> None:
    async def scene() -> None:
        order = {"do": "die", "code": 3, "printed": "a word"}
        await stage.failure(order)

        command, level, data = stage.step
        assert command == f"python -I {DOUBLE}"
        assert (level, data["exit_code"], data["tail"], data["order"]) == ("error", 3, "a word", order)
        assert 0 < data["cpu_seconds"] < 10
        assert 0 < data["wall_seconds"] < 30
        assert data["max_rss_bytes"] > 1 << 20

    play(scene)


def test_an_order_that_is_too_long_is_not_recorded(stage: Stage) -> None:
    async def scene() -> None:
        await stage.failure({"do": "die", "filler": "x" * 70_000})

        assert "order" not in stage.step[2]

    play(scene)
