"""Carry out an order in this process: quick, and its faults have a traceback. `drive` does it as a worker does."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from telecine.media.child.protocol import ChildSession
from telecine.media.child.source.reader import FileSource, SourceReader
from telecine.media.orders import Segment
from telecine.media.plain_json import from_plain


class Listener:
    """The other end of the line: remembers what is said, and acknowledges each segment at once."""

    def __init__(self) -> None:
        self.lines: list[Mapping[str, Any]] = []
        self._acks: list[dict[str, Any]] = []

    def say(self, message: Mapping[str, Any]) -> None:
        self.lines.append(message)
        if segment := message.get("segment"):
            self._acks.append({"ack": [segment["rung"], segment["number"]]})

    def hear(self) -> dict[str, Any]:
        return self._acks.pop(0)


@dataclass(frozen=True)
class Told:
    """The result, and all that was said on the way to it."""

    result: Any
    lines: list[Mapping[str, Any]]

    @property
    def segments(self) -> list[Segment]:
        return [from_plain(Segment, line["segment"]) for line in self.lines if "segment" in line]

    @property
    def notes(self) -> list[str]:
        return [line["note"] for line in self.lines if "note" in line]


def carry_out(
    operation: Callable[[Any, ChildSession], Mapping[str, Any]], order: Any, scratch: Path, source: Path | None = None
) -> Told:
    """Run one operation; `Refused` comes through."""
    listener = Listener()
    handle = None if source is None else os.open(source, os.O_RDONLY)
    try:
        reader = None if handle is None else SourceReader(FileSource(handle))
        talk = ChildSession(listener, source=reader, scratch=scratch)
        talk.done(result := operation(order, talk))
    finally:
        if handle is not None:
            os.close(handle)
    return Told(result, listener.lines)
