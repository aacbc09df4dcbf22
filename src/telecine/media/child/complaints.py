"""What FFmpeg says while it works. An exit without an error proves nothing: a decoder hides faults and says so here."""

from __future__ import annotations

from types import TracebackType
from typing import Self

import av.logging

_KEPT = 20


class Complaints:
    """Listen to FFmpeg for a while, in all its threads. Keeps the first twenty lines and counts the rest.

    `of`: only what these parts say ("h264", "mov,mp4,m4a,3gp,3g2,mj2"); None: whoever speaks.
    """

    def __init__(self, level: int = av.logging.WARNING, *, of: str | None = None) -> None:
        self._level = level
        self._of = of
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

    def _take(self) -> None:
        for _, who, text in self._heard:
            if self._of is None or who == self._of:
                self._count += 1
                if len(self._lines) < _KEPT:
                    self._lines.append(f"{who}: {text.strip()}"[:300])
        self._heard.clear()
