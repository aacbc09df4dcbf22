"""Times of one stream as a muxer accepts them: each packet has one, and the order of decoding never goes back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from av.packet import Packet

from telecine.media.child.timing.retiming import ascends, is_whole
from telecine.media.child.timing.track_times import LATE, StreamCut, StreamTimes


@dataclass(slots=True)
class StreamClock:
    """Sees every packet of a stream, remembers its times, and puts right what is known to be wrong with them."""

    track: StreamTimes
    is_timeless: bool = False  # the container counts packets: what it gives as PTS is a guess
    times: Mapping[int, tuple[int, int]] = field(default_factory=dict)  # PTS and DTS by the packet's number, if known
    cuts: tuple[StreamCut, ...] = ()
    mended: int = 0
    _last: int | None = None
    _next_cut: int = 0

    @property
    def is_empty(self) -> bool:
        return not self.track.pts

    @property
    def seen(self) -> list[int | None]:
        """When each packet is shown by the word of the file, with clock jumps taken out."""
        return self.track.shown(self.cuts)

    @property
    def is_whole(self) -> bool:
        return is_whole(self.seen)

    @property
    def ascends(self) -> bool:
        return ascends(self.seen)

    @property
    def damaged(self) -> int:
        """Packets that the demuxer calls corrupt. Beside a clock jump it must: there a recording was cut."""
        excused = {number for cut in self.cuts for number in range(cut.number - LATE, cut.number + 1)}
        return sum(number not in excused for number in self.track.corrupt)

    def restarted(self) -> StreamClock:
        """The same clock, before the first packet."""
        track = StreamTimes(self.track.time_base, self.track.is_picture)
        return StreamClock(track, is_timeless=self.is_timeless, times=self.times, cuts=self.cuts)

    def mend(self, packet: Packet[Any], order: int) -> bool:
        """Give this packet, the `order`th of the file, its times; False: it is to be left out."""
        number = len(self.track.pts)
        cut = self._cut_at(number)
        shift = cut.shift if cut is not None else 0
        given = packet.dts if self.is_timeless else packet.pts
        marks = {"is_key": packet.is_keyframe, "is_corrupt": packet.is_corrupt}
        self.track.add(given, packet.dts, packet.duration or 0, order, **marks)
        pts, dts = self.times.get(number, (_moved(packet.pts, shift), _moved(packet.dts, shift)))
        if cut is not None and cut.drops and pts is not None and pts + self._slack(packet) < cut.begin:
            return False
        self._set(packet, pts, dts, _moved(packet.pts, shift))
        return True

    def _slack(self, packet: Packet[Any]) -> int:
        """Clocks are rounded: sound that overlaps by less than half a packet goes on."""
        return 0 if self.track.is_picture else (packet.duration or 0) // 2

    def _set(self, packet: Packet[Any], pts: int | None, dts: int | None, told: int | None) -> None:
        if pts is None:
            pts = dts if dts is not None else (self._last or 0) + (packet.duration or 1)
        if dts is None:
            dts = pts if self._last is None else self._last
        dts = min(dts, pts) if self._last is None else max(min(dts, pts), self._last)
        self.mended += pts != told
        self._last = packet.dts = dts
        packet.pts = max(pts, dts)

    def _cut_at(self, number: int) -> StreamCut | None:
        """The last cut at or before this packet."""
        if self._next_cut < len(self.cuts) and self.cuts[self._next_cut].number == number:
            self._next_cut += 1
        return self.cuts[self._next_cut - 1] if self._next_cut else None


def _moved(time: int | None, shift: int) -> int | None:
    return None if time is None else time + shift
