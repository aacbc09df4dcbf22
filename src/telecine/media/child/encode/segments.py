"""Fragments become segments: gathered, compared with the plan, flushed to disk, and only then said."""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass, field
from typing import BinaryIO

from telecine.media.child.protocol import ChildSession, OrderRefused
from telecine.media.mp4.boxes import Fragment, InitFacts, fragments, read_init
from telecine.media.orders import MissingSegments, Segment, Timing


@dataclass(slots=True)
class _Open:
    """A segment that is being written."""

    number: int
    file: BinaryIO
    size: int = 0
    digest: hashlib._Hash = field(default_factory=hashlib.sha256)
    parts: list[Fragment] = field(default_factory=list)

    @property
    def frames(self) -> int:
        return sum(part.frames for part in self.parts)


class SegmentWriter:
    """Writes the segments of one rung from `first` on."""

    def __init__(self, wanted: MissingSegments, timing: Timing, talk: ChildSession, first: int) -> None:
        self._wanted = wanted
        self._timing = timing
        self._talk = talk
        self._next = first
        self._open: _Open | None = None
        self._facts: InitFacts | None = None

    def add(self, fragment: bytes, init: bytes | None) -> None:
        """Take one fragment; a segment that is complete by it is said."""
        (part,) = fragments(fragment, self._init(init))
        now = self._open = self._open or self._begun()
        now.file.write(fragment)
        now.digest.update(fragment)
        now.size += len(fragment)
        now.parts.append(part)
        if now.frames >= len(self._timing.frames_of(now.number)):
            self._close(now)

    def abandon(self) -> None:
        """Leave no half segment behind."""
        if self._open is not None:
            self._open.file.close()
            (self._talk.scratch / self._name(self._open.number, "part")).unlink()
            self._open = None

    @property
    def next(self) -> int:
        """The segment that would come now. All before it are closed."""
        return self._next

    def _init(self, init: bytes | None) -> InitFacts:
        if self._facts is None:
            if init is None:
                raise OrderRefused("muxer_failed", "a fragment came before its init")
            found = hashlib.sha256(init).hexdigest()
            if self._wanted.init not in (None, found):
                raise OrderRefused(
                    "init_mismatch",
                    f"the encoder of {self._wanted.rung.name} makes the init {found[:12]}, "
                    f"but the plan has {str(self._wanted.init)[:12]}: its segments would not fit",
                    permanent=True,
                )
            self._facts = read_init(init)
        return self._facts

    def _begun(self) -> _Open:
        path = self._talk.scratch / self._name(self._next, "part")
        return _Open(number=self._next, file=path.open("wb"))

    def _close(self, now: _Open) -> None:
        check(now.parts, self._timing, now.number, self._wanted.rung.name)
        now.file.flush()
        os.fsync(now.file.fileno())
        now.file.close()
        self._talk.may_close(self._wanted.rung.name)
        name = self._name(now.number, "m4s")
        (self._talk.scratch / self._name(now.number, "part")).rename(self._talk.scratch / name)
        self._open = None
        self._next += 1
        self._talk.segment(
            Segment(
                rung=self._wanted.rung.name,
                number=now.number,
                path=name,
                size=now.size,
                sha256=now.digest.hexdigest(),
                frames=now.frames,
                start=now.parts[0].start,
                duration=sum(part.duration for part in now.parts),
                fragments=_placed(now.parts),
            )
        )

    def _name(self, number: int, kind: str) -> str:
        return f"{self._wanted.rung.name}-{number:05d}.{kind}"


def _placed(parts: list[Fragment]) -> tuple[tuple[int, int, int, int], ...]:
    """Where each fragment lies in the segment, its size, its frames, and where its keyframe ends."""
    offset, placed = 0, []
    for part in parts:
        placed.append((offset, part.size, part.frames, part.first_end))
        offset += part.size
    return tuple(placed)


def check(parts: list[Fragment], timing: Timing, number: int, rung: str) -> None:
    """Compare a segment with the plan: each frame's time, the keyframes, the numbers of its fragments."""
    frames, step = timing.frames_of(number), timing.step
    wanted = [frame * step for frame in frames]
    shown = sorted(time for part in parts for time in part.times())
    per_segment = timing.per_segment // timing.gop
    sequence = [number * per_segment + place + 1 for place in range(len(parts))]
    begins = [frame * step for frame in frames[:: timing.gop]]
    wrong = (
        "other frames" if shown != wanted
        else "other fragments" if [part.start for part in parts] != begins
        else "other durations" if sum(part.duration for part in parts) != len(frames) * step
        else "other sequence numbers" if [part.sequence for part in parts] != sequence
        else "pictures that are shown before they are decoded" if any(min(part.shifts) < 0 for part in parts)
        else "a fragment that begins without a keyframe" if not all(part.first_is_key for part in parts)
        else None
    )  # fmt: skip
    if wrong:
        raise OrderRefused("segment_mismatch", f"segment {number} of {rung} has {wrong} than planned: {_told(shown)}")


def _told(shown: list[int]) -> str:
    return f"{len(shown)} frames from {shown[0]} to {shown[-1]}"
