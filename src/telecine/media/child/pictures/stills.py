"""Poster and sprites, from keyframes that were encoded anyway."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from operator import sub
from typing import Any

import av.error
from av.video.frame import VideoFrame

from telecine.media.child.error_report import reason
from telecine.media.child.pictures import jpeg
from telecine.media.child.protocol import ChildSession, OrderRefused
from telecine.media.child.source import open_source
from telecine.media.orders import MakePoster, MakeSprites, Still

POSTER, POSTER_SMALL = "poster.jpg", "poster_small.jpg"
_POSTER_QUALITY, _SPRITE_QUALITY = 85, 75
_LOOKED_AT = 320  # pixels wide: more says nothing new about a picture
_BLACK, _WHITE, _FLAT = 20.0, 235.0, 10.0  # mean and deviation of luma, 0 to 255


@dataclass(frozen=True, slots=True)
class PosterScore:
    """What a picture is worth as a poster."""

    light: float  # mean of luma
    contrast: float  # its standard deviation
    detail: float  # mean difference of neighbours

    @property
    def fault(self) -> str | None:
        if self.light < _BLACK:
            return "nearly black"
        if self.light > _WHITE:
            return "nearly white"
        return "nearly flat" if self.contrast < _FLAT else None

    @property
    def score(self) -> float:
        """Detail counts; a picture that is rather dark or rather light has to have more of it."""
        return self.detail * (1 - abs(self.light - 128) / 256)


def poster(order: MakePoster, talk: ChildSession) -> Mapping[str, Any]:
    """The files, which candidate it is, and why."""
    looks: dict[int, PosterScore] = {}
    best: tuple[tuple[bool, float], int, VideoFrame] | None = None
    for number, still in enumerate(order.stills):
        frame = _candidate(still, talk)
        if frame is not None:
            look = looks[number] = looked_at(frame)
            rank = (look.fault is None, look.score)
            if best is None or rank > best[0]:
                best = (rank, number, frame)
        talk.progress(number + 1)
    if best is None:
        raise OrderRefused("no_picture", "none of the candidates for the poster can be decoded")
    _, chosen, frame = best
    return {
        "files": _written_posters(frame, order.width, talk),
        "chosen": chosen,
        "at": str(order.stills[chosen].at),
        "why": _why(chosen, looks),
    }


def sprites(order: MakeSprites, talk: ChildSession) -> Mapping[str, Any]:
    """The sheets, in order."""
    if order.width % 2 or order.height % 2:
        raise OrderRefused("bad_order", f"sprites of {order.width}×{order.height}: both must be even", permanent=True)
    files = []
    for number, stills in enumerate(_sheets(order)):
        sheet = _Sheet(order, len(stills))
        for place, still in enumerate(stills):
            sheet.put(place, jpeg.scaled(first_frame(still, talk), order.width, order.height))
            talk.progress(number * order.columns * order.rows + place + 1)
        files.append(_written(f"sheet_{number:03d}.jpg", sheet.frame(), _SPRITE_QUALITY, talk))
    return {"files": files, "sprites": len(order.stills), "columns": order.columns, "rows": order.rows}


def warm_up(order: MakePoster | MakeSprites) -> None:
    """Whatever is loaded on first use, before the doors close."""
    jpeg.encoded(jpeg.scaled(VideoFrame(16, 16, "yuv420p"), 16, 16), _POSTER_QUALITY)


def first_frame(still: Still, talk: ChildSession) -> VideoFrame:
    """The keyframe that the file begins with. What follows it may be cut away."""
    try:
        with open_source.open_made(talk.scratch / still.file) as container:
            stream: Any = container.streams.video[0]
            open_source.prepare(stream)
            packet = next(one for one in container.demux(stream) if one.size)
            frames = [*stream.decode(packet), *stream.decode(None)]
            found: VideoFrame = frames[0]
            return found
    except (av.error.FFmpegError, IndexError, StopIteration) as error:
        raise OrderRefused(
            "no_picture", f"no picture can be decoded at {float(still.at):.3f} s: {reason(error)}"
        ) from error


def looked_at(frame: VideoFrame) -> PosterScore:
    """Measure a small copy of it."""
    width = min(_LOOKED_AT, frame.width)
    small = jpeg.scaled(frame, jpeg.even(width), jpeg.even(frame.height * width / frame.width))
    rows = list(_rows(small, 0))
    pixels = b"".join(rows)
    light = sum(pixels) / len(pixels)
    square = sum(map(int.__mul__, pixels, pixels)) / len(pixels)
    across = sum(sum(map(abs, map(sub, row[1:], row))) for row in rows)
    down = sum(sum(map(abs, map(sub, lower, upper))) for upper, lower in pairwise(rows))
    return PosterScore(light, math.sqrt(max(0.0, square - light * light)), (across + down) / (2 * len(pixels)))


def _candidate(still: Still, talk: ChildSession) -> VideoFrame | None:
    try:
        return first_frame(still, talk)
    except OrderRefused as refused:
        talk.note(refused.message)
        return None


def _why(chosen: int, looks: Mapping[int, PosterScore]) -> str:
    faults = [f"{number}: {look.fault}" for number, look in looks.items() if look.fault]
    look = looks[chosen]
    said = f"most detail ({look.detail:.1f}) of {len(looks)} candidates, light {look.light:.0f}"
    return f"{said}; left out {', '.join(faults)}" if faults and look.fault is None else said


def _written_posters(frame: VideoFrame, most: int, talk: ChildSession) -> list[dict[str, Any]]:
    width = min(most, frame.width)
    sizes = {POSTER: width, POSTER_SMALL: width / 2}
    return [
        _written(
            name,
            jpeg.scaled(frame, jpeg.even(wide), jpeg.even(frame.height * wide / frame.width)),
            _POSTER_QUALITY,
            talk,
        )
        for name, wide in sizes.items()
    ]


def _written(name: str, frame: VideoFrame, quality: int, talk: ChildSession) -> dict[str, Any]:
    data = jpeg.encoded(frame, quality)
    (talk.scratch / name).write_bytes(data)
    digest = hashlib.sha256(data).hexdigest()
    return {"path": name, "size": len(data), "sha256": digest, "width": frame.width, "height": frame.height}


def _sheets(order: MakeSprites) -> Iterator[Sequence[Still]]:
    each = order.columns * order.rows
    for at in range(0, len(order.stills), each):
        yield order.stills[at : at + each]


def _rows(frame: VideoFrame, plane: int) -> Iterator[bytes]:
    """The visible bytes of each line."""
    source = frame.planes[plane]
    data, stride = bytes(source), source.line_size
    for row in range(source.height):
        yield data[row * stride : row * stride + source.width]


class _Sheet:
    """Pictures side by side; rows and columns that stay empty are left out."""

    def __init__(self, order: MakeSprites, count: int) -> None:
        self._columns = order.columns
        self._cell = (order.width, order.height)
        rows = -(-count // order.columns)
        self._frame = VideoFrame(min(count, order.columns) * order.width, rows * order.height, jpeg.PIXELS)
        fill = (b"\0", b"\x80", b"\x80")  # black
        self._data = [bytearray(one * plane.buffer_size) for one, plane in zip(fill, self._frame.planes, strict=True)]

    def put(self, place: int, picture: VideoFrame) -> None:
        row, column = divmod(place, self._columns)
        for number, plane in enumerate(self._frame.planes):
            shrunk = 1 if number == 0 else 2
            left, top = column * self._cell[0] // shrunk, row * self._cell[1] // shrunk
            for line, pixels in enumerate(_rows(picture, number)):
                at = (top + line) * plane.line_size + left
                self._data[number][at : at + len(pixels)] = pixels

    def frame(self) -> VideoFrame:
        for plane, data in zip(self._frame.planes, self._data, strict=True):
            plane.update(bytes(data))
        return self._frame
