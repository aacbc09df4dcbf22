"""Walk over boxes (size, type, body) without believing them."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any


class DamagedBoxes(ValueError):
    """These bytes are not what they say they are."""


@dataclass(frozen=True, slots=True)
class Box:
    """`start` and `end` bound it all, `body` is where its header ends."""

    type: str
    start: int
    body: int
    end: int

    @property
    def size(self) -> int:
        return self.end - self.start


def walk(data: bytes, start: int = 0, end: int | None = None) -> Iterator[Box]:
    """The boxes that lie side by side from `start` to `end`; they must fill it."""
    stop = len(data) if end is None else end
    at = start
    while at < stop:
        if stop - at < 8:
            raise DamagedBoxes(f"{stop - at} bytes at {at} are too few for a box")
        size, name = struct.unpack_from(">I4s", data, at)
        body = at + 8
        if size == 1:
            if stop - at < 16:
                raise DamagedBoxes(f"the box at {at} is cut in its header")
            (size,) = struct.unpack_from(">Q", data, body)
            body += 8
        kind = name.decode("latin-1")
        if size < body - at or at + size > stop:
            raise DamagedBoxes(f"the box {kind!r} at {at} says {size} bytes, there are {stop - at}")
        yield Box(kind, at, body, at + size)
        at += size


def inside(data: bytes, box: Box, skip: int = 0) -> Iterator[Box]:
    """The boxes in the body of this one, after `skip` bytes of its own fields."""
    if box.body + skip > box.end:
        raise DamagedBoxes(f"the box {box.type!r} is too short for its fields")
    return walk(data, box.body + skip, box.end)


def some(data: bytes, box: Box, kind: str, skip: int = 0) -> Box | None:
    """The box of this kind inside, if there is one; two are damage."""
    found = [inner for inner in inside(data, box, skip) if inner.type == kind]
    if len(found) > 1:
        raise DamagedBoxes(f"{box.type} holds {len(found)} {kind} boxes, one was expected")
    return found[0] if found else None


def only(data: bytes, box: Box, kind: str, skip: int = 0) -> Box:
    found = some(data, box, kind, skip)
    if found is None:
        raise DamagedBoxes(f"{box.type} holds no {kind} box")
    return found


def full(data: bytes, box: Box) -> tuple[int, int, int]:
    """Version, flags, and where the fields of a full box begin."""
    if box.end - box.body < 4:
        raise DamagedBoxes(f"the box {box.type!r} is too short for a version")
    (word,) = struct.unpack_from(">I", data, box.body)
    return word >> 24, word & 0xFFFFFF, box.body + 4


def unpack(form: str, data: bytes, at: int, end: int) -> tuple[Any, ...]:
    """The fields at `at`; they must lie before `end`, which is that of their box."""
    if at + struct.calcsize(form) > min(end, len(data)):
        raise DamagedBoxes(f"a box ends at {end}, in the middle of a field at {at}")
    return struct.unpack_from(form, data, at)
