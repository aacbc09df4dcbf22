"""The frames of a source that an order wants: each one, in order, found by its PTS and never by counting.

Seeking lies: a demuxer may land behind the place, and a decoder that began in mid-film may leave frames out. So each
frame is compared with the index, and when one does not come the source is opened again and read from further back: one
keyframe, then two. An order whose keyframes end before that begins with the film, or with a film in which nobody can
seek: then it is read from the beginning. What came before was right, so nothing is done twice.

A frame that never comes fails the order; if it may `mend`, the one before stands in for it.

Before the first wanted frame only those are decoded that another frame may refer to. H.264 says of each frame whether
one does (`nal_ref_idc`), so the others are left out there without a trace. HEVC does not: its word holds within a layer
of time only. A way from further back, and an order that may show the frame before the first, leave nothing out.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from contextlib import closing

from av.container import InputContainer
from av.error import FFmpegError
from av.packet import Packet
from av.video.frame import VideoFrame
from av.video.stream import VideoStream

from telecine.media.child.protocol import ChildSession, OrderRefused
from telecine.media.child.source.open_source import demuxed, is_damage, open_source, prepare, stream_of
from telecine.media.orders import EncodeVideo

_FURTHER_BACK = 2  # keyframes before the nearest one: more would be hours of decoding for one frame


class FrameSelector:
    """Decodes `[first, last)` of the film, in numbers of output frames."""

    def __init__(self, order: EncodeVideo, talk: ChildSession, first: int, last: int) -> None:
        self._order = order
        self._talk = talk
        self._at = first - order.first
        self._stop = last - order.first
        self._before: VideoFrame | None = None
        self._refused: set[int | None] = set()  # times of packets: one may be met again on a way back
        self.corrupt = 0  # frames that it gave, but calls corrupt
        self.mended = 0  # frames of the output that another one stands in for

    @property
    def damaged(self) -> int:
        """Packets that the decoder refused."""
        return len(self._refused)

    def __iter__(self) -> Iterator[tuple[range, VideoFrame]]:
        """Each frame, with the numbers of the output frames that show it."""
        back = 0
        while self._at < self._stop:
            nearest = self._nearest()
            if back > self._furthest():
                yield from self._stood_in(None)
                return
            yield from self._until_one_is_missing(back)
            back = back + 1 if self._nearest() == nearest else 0

    def _until_one_is_missing(self, back: int) -> Iterator[tuple[range, VideoFrame]]:
        """Frames from this far back on. Whoever begins as far back as it goes need not turn back for a later frame."""
        times, began, is_last = self._order.times, self._at, back == self._furthest()
        for frame in self._decoded(back):
            if is_last and frame.pts is not None and frame.pts > times[self._at]:
                yield from self._stood_in(frame)
                began = self._at
                if self._at == self._stop:
                    return
            wanted = times[self._at]
            if frame.pts is None or frame.pts < wanted:
                self._before = frame
                if self._at > began and not self._order.drops:
                    raise OrderRefused(
                        "frame_mismatch", f"the source has a frame at {frame.pts} that its index lacks", permanent=True
                    )
                continue
            if frame.pts > wanted:
                return
            self._before = frame
            numbers = self._numbers_of(wanted)
            self.corrupt += frame.is_corrupt
            self._at += len(numbers)
            yield numbers, frame
            if self._at == self._stop:
                return

    def _stood_in(self, after: VideoFrame | None) -> Iterator[tuple[range, VideoFrame]]:
        """For frames that do not come, up to `after` or the end: the last one before them, or else the one after."""
        until = None if after is None else after.pts
        shown = self._before or after
        if shown is None or not self._order.mend:
            raise self._missing()
        while self._at < self._stop and (until is None or self._order.times[self._at] < until):
            numbers = self._numbers_of(self._order.times[self._at])
            self._at += len(numbers)
            self.mended += len(numbers)
            yield numbers, shown

    def _numbers_of(self, time: int) -> range:
        """The output frames that show the frame of this time, from where we are."""
        end = self._at
        while end < self._stop and self._order.times[end] == time:
            end += 1
        return range(self._order.first + self._at, self._order.first + end)

    def _decoded(self, back: int) -> Iterator[VideoFrame]:
        with closing(open_source(self._talk, self._order.format)) as container:
            stream = stream_of(container, self._order.picture.stream)
            if not isinstance(stream, VideoStream):
                raise OrderRefused("source_changed", f"stream {stream.index} is no picture any more", permanent=True)
            prepare(stream, self._order.limits.threads)
            try:
                self._seek(container, stream, back)
                packets = demuxed(container, stream)
                yield from self._out_of(self._spared(packets, stream) if self._may_spare(back) else packets)
            except FFmpegError as error:  # no way to the place, or none further: the caller tries another one
                if not is_damage(error):
                    raise

    def _out_of(self, packets: Iterator[Packet[VideoStream]]) -> Iterator[VideoFrame]:
        for packet in packets:
            self._talk.alive()
            try:
                yield from packet.decode()
            except FFmpegError as error:
                if not is_damage(error):
                    raise
                self._refused.add(packet.pts)

    def _may_spare(self, back: int) -> bool:
        """Only on the first way, and only if another is left."""
        picture, is_first = self._order.picture, back == 0 < self._furthest()
        return is_first and picture.codec == "h264" and not picture.interlaced and not self._order.mend

    def _spared(self, packets: Iterator[Packet[VideoStream]], stream: VideoStream) -> Iterator[Packet[VideoStream]]:
        """The same packets; the decoder is told which of them it may leave out."""
        context, first = stream.codec_context, self._order.times[self._at]
        for packet in packets:
            is_before = packet.pts is not None and packet.pts < first
            context.skip_frame = "NONREF" if is_before else "DEFAULT"
            yield packet

    def _seek(self, container: InputContainer, stream: VideoStream, back: int) -> None:
        nearest = self._nearest()
        if nearest >= back:
            container.seek(self._order.keys[nearest - back], stream=stream, backward=True)

    def _nearest(self) -> int:
        """The place among the keys of the last one at or before the next frame; -1: all are behind it."""
        return bisect_right(self._order.keys, self._order.times[min(self._at, len(self._order.times) - 1)]) - 1

    def _furthest(self) -> int:
        """How many keys back the last way is; one more than there are means the beginning."""
        return min(_FURTHER_BACK, self._nearest() + 1)

    def _missing(self) -> OrderRefused:
        number, time = self._order.first + self._at, self._order.times[self._at]
        seconds = float(number / self._order.timing.rate)
        found = f"frame {number} of the film (at {seconds:.2f} s, {time} on the source's clock) cannot be decoded"
        hint = f": the decoder refuses {self.damaged} packets" if self.damaged else ""
        what_to_do = (
            "nor any frame near it; repair the file or encode it again"
            if self._order.mend
            else "repair the file, or take what can be decoded with --damaged warn"
        )
        return OrderRefused("frame_mismatch", f"{found}{hint}; {what_to_do}", permanent=True)
