"""From a decoded frame to the picture of each rung: upright, square pixels, right size, 8 bit, right colour.

    buffer ─ mirror? ─ turn? ─ tone map or colour? ─ split ─┬─ scale ─ sink 1080p
                                                           └─ scale ─ split ─┬─ sink 720p
                                                                             └─ scale ─ sink 360p …

Rungs of one size share their picture, and a rung is scaled from another's where the plan says so.

The graph is built from a frame, not from the stream's header: a later frame of another kind gets another graph. No
filter here needs neighbours, so a chunk comes out as the same frames would in one pass.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from fractions import Fraction
from pathlib import Path
from typing import NamedTuple

from av.error import BlockingIOError as NothingYet
from av.error import EOFError as NoMore
from av.filter import Graph
from av.filter.context import FilterContext
from av.video.frame import VideoFrame

from telecine.media import colour, tone_map
from telecine.media.child.protocol import OrderRefused
from telecine.media.ladders.encoder_families import family_of
from telecine.media.orders import Rung
from telecine.media.source import Picture

_FULL, _LIMITED = 2, 1  # AVCOL_RANGE_JPEG, AVCOL_RANGE_MPEG
_RGB = 0  # matrix
_TURNS = {90: (("transpose", "clock"),), 180: (("hflip", None), ("vflip", None)), 270: (("transpose", "cclock"),)}
_PRIMARIES = {1: "bt709", 4: "bt470m", 5: "bt470bg", 6: "smpte170m", 7: "smpte240m", 9: "bt2020", 12: "smpte432"}
_TRANSFERS = {1: "bt709", 4: "bt470m", 5: "bt470bg", 6: "smpte170m", 7: "smpte240m", 13: "iec61966-2-1"}
_MATRICES = {1: "bt709", 4: "fcc", 5: "bt470bg", 6: "smpte170m", 7: "smpte240m", 9: "bt2020nc"}


class Scaler:
    """Pictures for these rungs, from frames like the first."""

    def __init__(
        self, picture: Picture, rungs: Sequence[Rung], frame: VideoFrame, *, threads: int, scratch: Path
    ) -> None:
        self._picture = picture
        self._kind = _kind_of(frame)
        self.rungs = tuple(rungs)
        self._tags = _tags(picture, frame)
        self._scratch = scratch
        # Light is converted once for all rungs: the scaler takes seconds to make its tables.
        self._colour = (*rungs[0].colour[:2], _RGB if picture.is_hdr else self._tags[2])
        self._graph = Graph()
        self._graph.threads = threads
        self._sinks = self._branches(self._head(frame))
        self._graph.configure()
        # What was put in and has not come out, for each sink, in order.
        self._inside: list[deque[range]] = [deque() for _ in rungs]

    def fits(self, frame: VideoFrame, rungs: Sequence[Rung]) -> bool:
        return _kind_of(frame) == self._kind and tuple(rungs) == self.rungs

    def put(self, frame: VideoFrame, numbers: range) -> Iterator[tuple[Rung, range, VideoFrame]]:
        """Put a frame in; answer what comes out, which may be an earlier one."""
        primaries, transfer, matrix, span = self._tags
        frame.color_primaries, frame.color_trc, frame.colorspace, frame.color_range = primaries, transfer, matrix, span
        frame.pts, frame.time_base = numbers.start, Fraction(1)
        for waiting in self._inside:
            waiting.append(numbers)
        self._graph.push(frame)
        return self._come_out()

    def end(self) -> Iterator[tuple[Rung, range, VideoFrame]]:
        """No frame comes any more; answer those that are still inside."""
        self._graph.push(None)
        yield from self._come_out()
        if any(self._inside):
            raise OrderRefused("filter_failed", f"the filters kept {len(self._inside[0])} frames")
        if any(_pulled(sink) for sink in self._sinks):
            raise OrderRefused("filter_failed", "the filters made a frame of their own after the last")

    def _come_out(self) -> Iterator[tuple[Rung, range, VideoFrame]]:
        """No more than went in: to ask a sink that is empty costs an exception, for each frame of each rung.

        So a frame too many is met here as the next one, and its time tells.
        """
        for rung, sink, waiting in zip(self.rungs, self._sinks, self._inside, strict=True):
            while waiting and (frame := _pulled(sink)):
                numbers = waiting.popleft()
                if frame.time != numbers.start:
                    raise OrderRefused(
                        "filter_failed", f"the filters made frame {frame.time} where {numbers.start} belongs"
                    )
                yield rung, numbers, frame

    def _head(self, frame: VideoFrame) -> FilterContext:
        """Everything that is done once for all rungs."""
        _, _, matrix, span = self._tags
        at = self._graph.add(
            "buffer",
            video_size=f"{frame.width}x{frame.height}",
            pix_fmt=frame.format.name,
            time_base="1/1",
            pixel_aspect="1/1",  # the rungs' sizes are for square pixels already
            colorspace=str(matrix),
            range=str(span),
        )
        for name, arguments in self._corrections():
            following = self._graph.add(name, arguments)
            at.link_to(following)
            at = following
        return at

    def _corrections(self) -> Iterator[tuple[str, str | None]]:
        # Encoders write some of it into the stream: captions, which the master playlist denies, above all.
        yield "sidedata", "mode=delete"
        if self._picture.mirrored:
            yield "hflip", None
        yield from _TURNS.get(self._picture.rotation, ())
        if self._picture.is_hdr:
            yield from self._tone_mapping()
        elif words := _conversion(self._tags[:3], self._colour):
            yield "scale", ":".join(words)

    def _tone_mapping(self) -> Iterator[tuple[str, str | None]]:
        """Through the table of `tone_map`. FFmpeg is fastest with 16 bits here, in twice the speed of 10."""
        if size := self.rungs[0].tone_mapped_at:
            yield "scale", f"w={size[0]}:h={size[1]}:flags=bicubic"
        yield "format", "gbrp16le"
        yield "lut3d", f"file={_escaped(self._table())}:interp=tetrahedral"
        yield "setparams", "color_primaries=bt709:color_trc=bt709:colorspace=gbr:range=pc"

    def _table(self) -> Path:
        """The table as a file in the scratch folder: that is the only way in for this filter."""
        path = self._scratch / "tone-map.cube"
        if not path.exists():
            peak = self._picture.peak or tone_map.USUAL_PEAK
            primaries, transfer = self._tags[:2]
            path.write_text(tone_map.cube(transfer=transfer, primaries=primaries, peak=peak), encoding="utf-8")
        return path

    def _branches(self, head: FilterContext) -> list[FilterContext]:
        """A tree of scalers over the head, and a sink for each rung, in their order."""
        sinks: dict[int, FilterContext] = {}
        grown: list[tuple[FilterContext, tuple[_Scaled, ...]]] = [(head, ())]
        while grown:
            at, way = grown.pop()
            ends = [number for number, rung in enumerate(self.rungs) if _way(rung) == way]
            further = dict.fromkeys(_way(rung)[: len(way) + 1] for rung in self.rungs if _leads(way, _way(rung)))
            outputs = self._split(at, len(ends) + len(further))
            for number in ends:
                sinks[number] = self._linked(next(outputs), "buffersink")
            had = way[-1].colour if way else self._colour
            for longer in further:
                scaled = self._linked(next(outputs), "scale", _scale(longer[-1], had))
                grown.append((self._linked((scaled, 0), "format", longer[-1].pixels), longer))
        return [sinks[number] for number in range(len(self.rungs))]

    def _split(self, at: FilterContext, outputs: int) -> Iterator[tuple[FilterContext, int]]:
        """What can be linked on, so many times."""
        if outputs == 1:
            return iter([(at, 0)])
        split = self._linked((at, 0), "split", str(outputs))
        return iter([(split, number) for number in range(outputs)])

    def _linked(self, behind: tuple[FilterContext, int], name: str, arguments: str | None = None) -> FilterContext:
        made = self._graph.add(name, arguments)
        behind[0].link_to(made, output_idx=behind[1])
        return made


class _Scaled(NamedTuple):
    """A picture on the way from the source to a rung."""

    width: int
    height: int
    pixels: str
    colour: colour.Colour


def _way(rung: Rung) -> tuple[_Scaled, ...]:
    """The pictures that are made for a rung, its own the last."""
    look = (family_of(rung).pixels, rung.colour)
    own = _Scaled(rung.width, rung.height, *look)
    return (own,) if rung.scaled_from is None else (_Scaled(*rung.scaled_from, *look), own)


def _leads(way: tuple[_Scaled, ...], longer: tuple[_Scaled, ...]) -> bool:
    return len(way) < len(longer) and longer[: len(way)] == way


def _scale(wanted: _Scaled, had: colour.Colour) -> str:
    """Bicubic: FFmpeg's own choice."""
    words = [f"w={wanted.width}", f"h={wanted.height}", "flags=bicubic", "out_range=tv"]
    return ":".join([*words, *_conversion(had, wanted.colour)])


def _conversion(had: colour.Colour, wanted: colour.Colour) -> list[str]:
    """Options of a scaler that change these colours into those; none where nothing differs."""
    words = []
    if had[2] != wanted[2]:
        words.append(f"out_color_matrix={_MATRICES[wanted[2]]}")
    if had[0] != wanted[0]:
        words.append(f"out_primaries={_PRIMARIES[wanted[0]]}")
    if had[1] != wanted[1]:
        words.append(f"out_transfer={_TRANSFERS[wanted[1]]}")
    return words


def _escaped(path: Path) -> str:
    """A path as an option of a filter."""
    return "".join(f"\\{one}" if one in r"\':" else one for one in str(path))


def _pulled(sink: FilterContext) -> VideoFrame | None:
    """The next frame; None: there is none, or none yet."""
    try:
        frame = sink.pull()
    except (NothingYet, NoMore):
        return None
    return frame if isinstance(frame, VideoFrame) else None


def _kind_of(frame: VideoFrame) -> tuple[int, int, str, int]:
    return frame.width, frame.height, frame.format.name, int(frame.color_range)


def _tags(picture: Picture, frame: VideoFrame) -> tuple[int, int, int, int]:
    """Primaries, transfer, matrix and range of a frame, with nothing left open."""
    primaries, transfer, matrix = colour.of_source(picture)
    if frame.format.is_rgb:
        return primaries, transfer, _RGB, _FULL
    full = frame.color_range == _FULL or frame.format.name.startswith("yuvj")
    said = frame.color_range in (_FULL, _LIMITED)
    return primaries, transfer, matrix, _FULL if full or (picture.full_range and not said) else _LIMITED
