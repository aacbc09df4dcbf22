"""What FFmpeg says while it works. An exit without an error proves nothing: a decoder hides faults and says so here."""

from __future__ import annotations

import logging
from types import TracebackType
from typing import Self

import av.logging

_KEPT = 50
_CHARS = 300
_ROOT = "libav"  # what PyAV names its loggers after: "libav.mov,mp4"


class FfmpegLog(logging.Handler):
    """Listen to FFmpeg for a while, in all its threads. Keeps the first lines, "who: what", and counts the rest.

    A handler hears each line as it is said. PyAV's own capture would keep them all, and a broken film has millions.
    PyAV must not leave out what is said twice, either: it forgets nothing between two listenings, so a fault that is
    like the last one of the film before would not be heard, and the tally of that film would be told of this one.
    """

    def __init__(self, level: int = av.logging.WARNING) -> None:
        super().__init__()
        self._threshold = level
        self._logger = logging.getLogger(_ROOT)
        self._lines: list[str] = []
        self.count = 0

    def __enter__(self) -> Self:
        self._before = av.logging.get_level(), self._logger.level, self._logger.propagate
        self._skipped = av.logging.get_skip_repeated()
        av.logging.set_skip_repeated(False)
        av.logging.set_level(self._threshold)
        self._logger.setLevel(1)
        self._logger.propagate = False
        self._logger.addHandler(self)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._logger.removeHandler(self)
        threshold, level, self._logger.propagate = self._before
        self._logger.setLevel(level)
        av.logging.set_level(threshold)
        av.logging.set_skip_repeated(self._skipped)

    def emit(self, record: logging.LogRecord) -> None:
        who = record.name.removeprefix(f"{_ROOT}.")
        line = f"{who}: {record.msg}"[:_CHARS]
        self.count += 1
        if len(self._lines) < _KEPT and line not in self._lines:
            self._lines.append(line)

    @property
    def lines(self) -> tuple[str, ...]:
        return tuple(self._lines)

    def of(self, demuxer: str) -> tuple[str, ...]:
        """What this demuxer said. FFmpeg lets it speak by all its names: "matroska,webm"."""
        return tuple(line for line in self.lines if demuxer in line.split(": ", 1)[0].split(","))
