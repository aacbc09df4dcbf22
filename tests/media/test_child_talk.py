"""How a child is heard: back-pressure, hang-up, death with its parent, ranges of a source, replay by hand."""

from __future__ import annotations

import json
import os
import select
import signal
import socket
import struct
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, BinaryIO

import psutil
import pytest

from telecine.media.child.source.reader import BLOCK, RangeSource, SourceFailed, SourceReader
from telecine.media.orders import EncodeVideo, plain_order
from telecine.media.plain_json import to_plain
from tests.media import child_driver
from tests.media.child_driver import Looked
from tests.media.make_video import Film, shoot
from tests.media.test_child_video import BIG, chunk

COMMAND = [sys.executable, "-I", "-m", "telecine.media.child"]
PATIENCE = 30


@pytest.fixture(scope="module")
def film(tmp_path_factory: pytest.TempPathFactory) -> Looked:
    home = tmp_path_factory.mktemp("film")
    return child_driver.look(shoot(home / "film.mp4", Film(voices=())), home)


@dataclass
class Child:
    """A child and both directions of its line."""

    process: subprocess.Popen[bytes]
    line: socket.socket
    lines: BinaryIO

    def say(self, message: Any) -> None:
        self.line.sendall(json.dumps(message).encode() + b"\n")

    def next(self, name: str) -> Any:
        """The next word of this kind; others are passed over."""
        for line in self.lines:
            if name in (message := json.loads(line)):
                return message[name]
        raise AssertionError(f"the child ended without {name!r}")

    def is_silent(self, seconds: float) -> bool:
        """No segment is said for so long."""
        while select.select([self.line], [], [], seconds)[0]:
            if "segment" in json.loads(self.lines.readline()):
                return False
        return True


@contextmanager
def started(scratch: Path, *handles: int) -> Iterator[Child]:
    ours, theirs = socket.socketpair()
    ours.settimeout(PATIENCE)
    process = subprocess.Popen(
        [*COMMAND, str(theirs.fileno())],
        cwd=scratch,
        pass_fds=(theirs.fileno(), *handles),
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    theirs.close()
    with ours, ours.makefile("rb", buffering=0) as lines:
        try:
            yield Child(process, ours, lines)
        finally:
            process.kill()
            process.wait(PATIENCE)


def told(order: Any, **files: int) -> dict[str, Any]:
    return {"order": plain_order(order), "files": files}


def segments(film: Looked, *numbers: int) -> EncodeVideo:
    return chunk(film, {BIG: numbers})


def test_only_one_closed_segment_of_a_rung_is_unrecorded(film: Looked, tmp_path: Path) -> None:
    with film.path.open("rb") as file, started(tmp_path, file.fileno()) as child:
        child.say(told(segments(film, 0, 1, 2, 3), source=file.fileno()))

        first = child.next("segment")
        waits = child.is_silent(1)
        closed = sorted(path.name for path in tmp_path.glob("*.m4s"))
        child.say({"ack": ["big", 0]})
        second = child.next("segment")

        assert [first["number"], second["number"]] == [0, 1]
        assert waits
        assert closed == [first["path"]]


def test_done_comes_after_the_last_segment_is_recorded(film: Looked, tmp_path: Path) -> None:
    with film.path.open("rb") as file, started(tmp_path, file.fileno()) as child:
        child.say(told(segments(film, 3), source=file.fileno()))
        child.next("segment")

        assert child.is_silent(0.5)
        assert child.process.poll() is None
        child.say({"ack": ["big", 3]})

        assert child.next("done")["frames"] == 10
        assert child.process.wait(PATIENCE) == 0


def test_a_child_whose_worker_hangs_up_ends(film: Looked, tmp_path: Path) -> None:
    with film.path.open("rb") as file, started(tmp_path, file.fileno()) as child:
        child.say(told(segments(film, 0, 1, 2), source=file.fileno()))
        child.next("segment")

        child.lines.close()
        child.line.close()

        assert child.process.wait(PATIENCE) == 1


PARENT = """
import subprocess, sys, time
theirs, source, *command = sys.argv[1:]
child = subprocess.Popen([*command, theirs], pass_fds=[int(theirs), int(source)])
print(child.pid, flush=True)
time.sleep(600)
"""


def test_a_child_dies_with_its_parent(film: Looked, tmp_path: Path) -> None:
    ours, theirs = socket.socketpair()  # we keep our end: nobody hangs up, only the parent dies
    with film.path.open("rb") as file, ours, theirs, ours.makefile("rb") as lines:
        handles = (theirs.fileno(), file.fileno())
        parent = subprocess.Popen(
            [sys.executable, "-c", PARENT, *map(str, handles), *COMMAND],
            cwd=tmp_path, pass_fds=handles, stdout=subprocess.PIPE,
        )  # fmt: skip
        assert parent.stdout is not None
        child = psutil.Process(int(parent.stdout.readline()))
        ours.sendall(json.dumps(told(segments(film, 0, 1, 2), source=file.fileno())).encode() + b"\n")
        while "segment" not in json.loads(lines.readline()):  # behind the sandbox, and waiting for an ack
            pass

        parent.kill()
        parent.wait(PATIENCE)
        parent.stdout.close()
        gone, alive = psutil.wait_procs([child], timeout=PATIENCE)

        assert (gone, alive) == ([child], [])


def test_an_order_is_replayed_by_hand(film: Looked, tmp_path: Path) -> None:
    plan = tmp_path / "plan.json"
    plan.write_text(json.dumps({"op": "video", **to_plain(segments(film, 0, 1, 2, 3))}))

    ran = subprocess.run(
        [*COMMAND, plan, "--source", film.path], cwd=tmp_path, capture_output=True, timeout=PATIENCE, check=True
    )

    lines = [json.loads(line) for line in ran.stdout.splitlines()]
    assert "sandbox" in lines[0]
    assert [line["segment"]["number"] for line in lines if "segment" in line] == [0, 1, 2, 3]
    assert lines[-1]["done"]["frames"] == 85


@pytest.mark.parametrize(
    ("order", "words"),
    [
        ({}, "holds no order"),
        ({"op": "levitate"}, "no operation 'levitate'"),
        ({"op": "video", "format": "mov"}, "does not fit its operation"),
        ({"op": "probe", "size": 10}, "needs a source"),
    ],
)
def test_a_bad_order_is_refused_in_one_sentence(tmp_path: Path, order: dict[str, Any], words: str) -> None:
    with started(tmp_path) as child:
        child.say({"order": order, "files": {}} if order else {})

        error = child.next("error")

        assert (error["code"], error["permanent"]) == ("bad_order", True)
        assert words in error["message"]
        assert "Traceback" not in error["message"]
        assert child.process.wait(PATIENCE) == 1


# --- a source that is asked for in ranges ------------------------------------------------------------------------


@contextmanager
def lent(data: bytes, most: int | None = None) -> Iterator[tuple[int, list[tuple[int, int]]]]:
    """A worker's side of `ask`; answers at most so many requests, then hangs up. Gives the child's end."""
    ours, theirs = socket.socketpair()
    asked: list[tuple[int, int]] = []

    def serve() -> None:
        with ours, ours.makefile("rb") as requests:
            while (most is None or len(asked) < most) and len(request := requests.read(16)) == 16:
                start, length = struct.unpack(">QQ", request)
                asked.append((start, length))
                ours.sendall(struct.pack(">Q", len(data[start : start + length])) + data[start : start + length])

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        yield theirs.detach(), asked
    finally:
        thread.join(PATIENCE)


def test_a_source_may_come_in_ranges(film: Looked, tmp_path: Path) -> None:
    data = film.path.read_bytes()
    with lent(data) as (handle, asked), started(tmp_path, handle) as child:
        os.close(handle)
        child.say(told(replace(segments(film, 3), size=len(data)), ask=handle))
        child.next("segment")
        child.say({"ack": ["big", 3]})

        assert child.next("done")["frames"] == 10
        assert child.process.wait(PATIENCE) == 0

    assert set(asked) == {(0, len(data))}


def test_ranges_are_blocks_and_recent_ones_are_kept() -> None:
    data = bytes(range(256)) * (3 * BLOCK // 256) + b"end"
    with lent(data) as (handle, asked):
        worker = RangeSource(handle, len(data))
        reader = SourceReader(worker)

        reader.seek(BLOCK - 2)
        two_blocks = reader.read(4) + reader.read(2)
        reader.seek(-3, 2)
        end = reader.read(100) + reader.read(100)
        reader.seek(5)
        again = reader.read(2)
        worker.close()

    assert (two_blocks, end, again) == (data[BLOCK - 2 : BLOCK + 2], b"end", data[5:7])
    assert asked == [(0, BLOCK), (BLOCK, BLOCK), (3 * BLOCK, 3)]


def test_a_source_that_stops_coming_is_no_end_of_file() -> None:
    with lent(b"x" * (2 * BLOCK), most=1) as (handle, _):
        worker = RangeSource(handle, 2 * BLOCK)
        reader = SourceReader(worker)
        reader.seek(BLOCK)
        reader.read(1)
        reader.seek(0)

        with pytest.raises(SourceFailed, match="hung up"):
            reader.read(1)
        worker.close()


def test_a_child_whose_source_stops_coming_says_so(film: Looked, tmp_path: Path) -> None:
    with lent(b"", most=0) as (handle, _), started(tmp_path, handle) as child:
        os.close(handle)
        child.say(told(replace(segments(film, 3), size=film.path.stat().st_size), ask=handle))

        error = child.next("error")

        assert (error["code"], error["permanent"]) == ("source_failed", False)


def test_a_worker_may_kill_a_child_at_any_moment(film: Looked, tmp_path: Path) -> None:
    with film.path.open("rb") as file, started(tmp_path, file.fileno()) as child:
        child.say(told(segments(film, 0, 1), source=file.fileno()))
        segment = child.next("segment")

        child.process.send_signal(signal.SIGKILL)
        child.process.wait(PATIENCE)

        assert (tmp_path / segment["path"]).stat().st_size == segment["size"]
