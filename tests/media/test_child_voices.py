"""What a child and FFmpeg say may be endless: what is kept of it is not, and nobody waits for its end."""

from __future__ import annotations

import gc
import logging
import select
import socket
import subprocess
import sys
import threading
import tracemalloc

import av.logging
import pytest

from telecine.media.child.ffmpeg_log import FfmpegLog
from telecine.media.child.source.reader import RangeSource, SourceFailed

LINES = 20_000


def test_of_many_complaints_the_first_are_kept_and_the_others_counted() -> None:
    gc.collect()  # what other tests have left complains when it is cleared away
    with FfmpegLog(av.logging.ERROR) as complaints:
        tracemalloc.start()
        for number in range(LINES):
            av.logging.log(av.logging.ERROR, "mov,mp4", f"fault {number}" + 200 * "!")
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()

    assert complaints.count == LINES
    assert len(complaints.lines) == 50
    assert complaints.of("mp4")[0].startswith("mov,mp4: fault 0!")
    assert peak < 500_000


def test_complaints_of_all_threads_are_heard_only_while_we_listen() -> None:
    before = av.logging.get_level(), logging.getLogger("libav").handlers[:]
    with FfmpegLog(av.logging.WARNING) as complaints:
        av.logging.log(av.logging.INFO, "aac", "nothing much")
        other = threading.Thread(target=av.logging.log, args=(av.logging.ERROR, "h264", "100% wrong %s"))
        other.start()
        other.join()
    av.logging.log(av.logging.ERROR, "h264", "later")

    assert complaints.lines == ("h264: 100% wrong %s",)
    assert (av.logging.get_level(), logging.getLogger("libav").handlers) == before


def test_what_was_said_of_one_film_is_neither_told_of_the_next_nor_hides_its_faults() -> None:
    with FfmpegLog(av.logging.ERROR) as first:
        for _ in range(3):
            av.logging.log(av.logging.ERROR, "h264", "mb_type 35 in I slice too large")
    with FfmpegLog(av.logging.ERROR) as second:
        av.logging.log(av.logging.ERROR, "h264", "mb_type 35 in I slice too large")
    with FfmpegLog(av.logging.ERROR) as third:
        av.logging.log(av.logging.ERROR, "aac", "something else")

    assert (first.count, second.count, third.count) == (3, 1, 1)
    assert second.lines == ("h264: mb_type 35 in I slice too large",)
    assert third.lines == ("aac: something else",)
    assert av.logging.get_skip_repeated()  # as it was


ENDLESS = """
import asyncio, os, selectors
from telecine.worker.media.media_child import TAIL_BYTES, OutputTail

async def main():
    tail = OutputTail(os.open("/dev/urandom", os.O_RDONLY | os.O_NONBLOCK))  # there is always more
    assert 0 < len(tail.drained()) <= TAIL_BYTES
    tail.close()

with asyncio.Runner(loop_factory=lambda: asyncio.SelectorEventLoop(selectors.SelectSelector())) as runner:
    runner.run(main())
"""


def test_a_child_that_does_not_stop_printing_holds_nobody() -> None:
    ran = subprocess.run([sys.executable, "-c", ENDLESS], capture_output=True, check=False, timeout=20)

    assert ran.returncode == 0, ran.stderr.decode()


def test_a_worker_that_hangs_up_with_a_request_unread_is_a_source_that_failed() -> None:
    ours, theirs = socket.socketpair()

    def hang_up() -> None:
        select.select([ours], [], [], 20)
        ours.close()

    other = threading.Thread(target=hang_up)
    other.start()
    asked = RangeSource(theirs.detach(), 100)

    with pytest.raises(SourceFailed, match="hung up"):
        asked.at(0, 10)

    other.join()
    asked.close()
