"""What FFmpeg says while it works. An exit without an error proves nothing: a decoder hides faults and says so here."""

from __future__ import annotations

from types import TracebackType
from typing import Self

import av.logging

_KEPT = 50


class Complaints:
    """Listen to FFmpeg for a while, in all its threads. Keeps the first lines, "who: what", and counts the rest."""

    def __init__(self, level: int = av.logging.WARNING) -> None:
        self._level = level
        self._capture = av.logging.Capture(local=False)
        self._heard: list[tuple[int, str, str]] = []
        self._lines: list[str] = []
        self._count = 0

    def __enter__(self) -> Self:
        self._before = av.logging.get_level()
        av.logging.set_level(self._level)
        self._heard = self._capture.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._capture.__exit__(None, None, None)
        av.logging.set_level(self._before)

    @property
    def count(self) -> int:
        self._take()
        return self._count

    @property
    def lines(self) -> tuple[str, ...]:
        self._take()
        return tuple(self._lines)

    def of(self, demuxer: str) -> tuple[str, ...]:
        """What this demuxer said. FFmpeg lets it speak by all its names: "matroska,webm"."""
        return tuple(line for line in self.lines if demuxer in line.split(": ", 1)[0].split(","))

    def _take(self) -> None:
        for _, who, text in self._heard:
            line = f"{who}: {text.strip()}"[:300]
            self._count += 1
            if len(self._lines) < _KEPT and line not in self._lines:
                self._lines.append(line)
        self._heard.clear()
