"""Interlaced film as whole pictures, one for each frame.

`bwdif` looks at the frame before and the frame after each. It has a graph of its own, which lives as long as frames are
of one kind: were it part of the scaler's, it would start anew whenever the rungs that lack something change. With the
true frames at both ends of a chunk the pictures are those of one pass over the whole film.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from fractions import Fraction

from av.error import BlockingIOError as NothingYet
from av.error import EOFError as NoMore
from av.filter import Graph
from av.video.frame import VideoFrame

from telecine.media.child.protocol import OrderRefused

Shown = tuple[range, VideoFrame]


def deinterlaced(frames: Iterable[Shown], threads: int) -> Iterator[Shown]:
    """The same numbers with deinterlaced pictures. Frames that say themselves that they are whole stay as they are."""
    filters: _Filters | None = None
    for numbers, frame in frames:
        if filters is not None and filters.kind != _kind_of(frame):
            yield from filters.end()
            filters = None
        filters = filters or _Filters(frame, threads)
        yield from filters.put(numbers, frame)
    if filters is not None:
        yield from filters.end()


class _Filters:
    """One graph, for frames of one kind."""

    def __init__(self, frame: VideoFrame, threads: int) -> None:
        self.kind = _kind_of(frame)
        self._inside: deque[range] = deque()
        self._put = 0
        self._graph = Graph()
        self._graph.threads = threads
        source = self._graph.add(
            "buffer",
            video_size=f"{frame.width}x{frame.height}",
            pix_fmt=frame.format.name,
            time_base="1/1",
            pixel_aspect="1/1",
            colorspace=str(int(frame.colorspace)),
            range=str(int(frame.color_range)),
        )
        filtered = self._graph.add("bwdif", "mode=send_frame:deint=interlaced")
        self._sink = self._graph.add("buffersink")
        source.link_to(filtered)
        filtered.link_to(self._sink)
        self._graph.configure()

    def put(self, numbers: range, frame: VideoFrame) -> Iterator[Shown]:
        frame.pts, frame.time_base = self._put, Fraction(1)
        self._put += 1
        self._inside.append(numbers)
        self._graph.push(frame)
        yield from self._come_out()

    def end(self) -> Iterator[Shown]:
        self._graph.push(None)
        yield from self._come_out()
        if self._inside:
            raise OrderRefused("filter_failed", f"the deinterlacer kept {len(self._inside)} frames")

    def _come_out(self) -> Iterator[Shown]:
        while self._inside:
            try:
                frame = self._sink.pull()
            except (NothingYet, NoMore):
                return
            assert isinstance(frame, VideoFrame)
            expected = self._put - len(self._inside)
            if frame.time != expected:
                raise OrderRefused(
                    "filter_failed", f"the deinterlacer made frame {frame.time} where {expected} belongs"
                )
            yield self._inside.popleft(), frame


def _kind_of(frame: VideoFrame) -> tuple[int, int, str, int, int]:
    return frame.width, frame.height, frame.format.name, int(frame.colorspace), int(frame.color_range)
