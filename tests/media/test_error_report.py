"""Every error that FFmpeg or the system can raise becomes one sentence without a path, permanent only if it must be."""

from __future__ import annotations

import errno
import inspect
import os
from collections.abc import Iterator
from pathlib import Path

import av.error
import pytest

from telecine.apps.transcode.flow import failed_by_system
from telecine.media.child.error_report import reason, report
from telecine.media.child.protocol import OrderRefused
from telecine.media.child.source.reader import SourceFailed, SourceReader

SECRET = "/srv/scratch/worker-1/3-3/remuxed.mkv"
READING = ("probe", "scan", "remux", "video", "audio")
# What another attempt may find in order: this machine, its disks, its drivers.
PASSING = {
    *("MemoryError", "BlockingIOError", "InterruptedError", "TimeoutError", "BrokenPipeError", "ChildProcessError"),
    *("ConnectionAbortedError", "ConnectionRefusedError", "ConnectionResetError", "ProcessLookupError"),
    "ExternalError",
}


def classes() -> Iterator[tuple[int, type[av.error.FFmpegError]]]:
    """Every class of PyAV that FFmpeg can cause, with every number that it stands for."""
    yield from av.error.classes.items()
    known = set(av.error.classes.values())
    for _, kind in inspect.getmembers(av.error, inspect.isclass):
        if issubclass(kind, av.error.FFmpegError) and kind not in known:
            yield 1, kind


def of_ffmpeg(number: int, kind: type[av.error.FFmpegError]) -> av.error.FFmpegError:
    return kind(number, os.strerror(number) if number < 200 else "Something odd", SECRET, (16, "mov", SECRET))


@pytest.mark.parametrize("operation", READING)
def test_every_error_of_ffmpeg_is_one_sentence(operation: str) -> None:
    seen = set()
    for number, kind in classes():
        said = report(of_ffmpeg(number, kind), operation)

        check(said)
        seen.add(kind.__name__)
        if kind is not av.error.OSError:
            assert said.permanent == (kind.__name__ not in PASSING), kind
    assert len(seen) > 40


def test_numbers_of_the_system_are_told_apart() -> None:
    cases = {
        errno.ENOSPC: ("no_space", False),
        errno.EDQUOT: ("no_space", False),
        errno.EFBIG: ("file_limit", True),
        errno.ENOMEM: ("out_of_memory", False),
        errno.EBUSY: ("ffmpeg_failed", False),
        errno.EMFILE: ("ffmpeg_failed", False),
        errno.EIO: ("unreadable", True),
        errno.EPERM: ("unreadable", True),
        errno.EINVAL: ("unreadable", True),
    }
    found = {}
    for number in cases:
        kind = av.error.classes.get(number, av.error.OSError)
        said = report(of_ffmpeg(number, kind), "remux")
        found[number] = (said.code, said.permanent)

    assert found == cases


def test_what_we_made_ourselves_is_not_the_source_s_fault() -> None:
    for operation in ("inits", "poster", "sprites", "decode", ""):
        said = report(of_ffmpeg(errno.EINVAL, av.error.ArgumentError), operation)

        assert (said.code, said.permanent) == ("ffmpeg_failed", False)


@pytest.mark.parametrize(
    ("error", "code", "permanent"),
    [
        (OSError(errno.ENOSPC, "No space left on device", SECRET), "no_space", False),
        (PermissionError(errno.EACCES, "Permission denied", SECRET), "scratch_failed", False),
        (OSError(errno.EFBIG, "File too large", SECRET), "file_limit", True),
        (MemoryError(), "out_of_memory", False),
        (KeyError(SECRET), "child_error", False),
        (AssertionError(), "child_error", False),
        (OrderRefused("damaged", "as it was said", permanent=True), "damaged", True),
    ],
)
def test_other_errors_hold_no_path(error: Exception, code: str, permanent: bool) -> None:
    said = report(error, "scan")

    check(said)
    assert (said.code, said.permanent) == (code, permanent)


def test_a_stage_tells_no_path_either() -> None:
    full = failed_by_system(OSError(errno.ENOSPC, "No space left on device", SECRET))
    gone = failed_by_system(FileNotFoundError(errno.ENOENT, "No such file or directory", SECRET))
    late = failed_by_system(TimeoutError())

    assert (full.message, full.code) == ("the disk is full: No space left on device", "no_space")
    assert (gone.message, gone.code) == ("a file or a connection failed: No such file or directory", "io_error")
    assert (late.message, late.permanent) == ("a file or a connection failed: TimeoutError", False)


class Breaking:
    """Bytes that fail to come."""

    size = 1000

    def __init__(self, error: Exception) -> None:
        self.error = error

    def at(self, start: int, length: int) -> bytes:
        raise self.error


@pytest.mark.parametrize(
    "error", [SourceFailed("the worker hung up"), OSError(errno.EIO, "Input/output error", SECRET)]
)
def test_whatever_follows_from_a_source_that_failed_may_be_tried_again(error: Exception) -> None:
    source = SourceReader(Breaking(error))
    with pytest.raises(SourceFailed):
        source.read(10)
    follows = (
        error,
        of_ffmpeg(errno.EINVAL, av.error.ArgumentError),
        av.error.InvalidDataError(1094995529, "Invalid data found"),
        OrderRefused("damaged", "no frame can be decoded", permanent=True),
    )

    for consequence in follows:
        said = report(consequence, "probe", source)

        check(said)
        assert (said.code, said.permanent) == ("source_failed", False)


def test_reasons_are_words() -> None:
    assert reason(of_ffmpeg(errno.EINVAL, av.error.ArgumentError)) == "invalid argument"
    assert reason(av.error.ExternalError(542398533, "Generic error in an external library")).startswith("generic")
    assert reason(KeyError()) == "KeyError"


def check(said: OrderRefused) -> None:
    assert SECRET not in said.message
    assert "Errno" not in said.message
    assert 10 < len(said.message) < 200 or said.code == "damaged"
    assert "\n" not in said.message
    assert not said.message.endswith(".")


def test_no_file_is_named_in_the_module(tmp_path: Path) -> None:
    said = report(FileNotFoundError(errno.ENOENT, "No such file or directory", str(tmp_path)), "scan")

    assert said.message == "a file of the scratch folder cannot be used: no such file or directory"
