"""The index: which frames a source has and when each is shown. From here on everything counts frames of the output.

    source PTS    0     41    83    125 …            constant: frame n of the output is frame n of the source
    output tick   0     1     2     3                variable: each frame at the nearest tick (see `ticks`)

Whatever asks for the same tick gets the same source PTS: chunks cannot disagree.
"""

from __future__ import annotations

import zlib
from base64 import b64decode, b64encode
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import accumulate, pairwise
from math import ceil

from telecine.errors import MediaRefused
from telecine.media.orders import Timing
from telecine.media.source import Packets
from telecine.media.timeline.frame_rates import fit, fit_with_gaps, output_rate, snap, typical
from telecine.media.timeline.ticks import assign_ticks

DEFAULT_RATE = Fraction(25)
# Seek points before the wanted one: some demuxers land behind where they were told to.
SPARE_KEYS = 2
# A single picture that claims a higher rate says nothing about how long it is shown.
FASTEST = 240


@dataclass(frozen=True, slots=True, kw_only=True)
class Index:
    """The times of one video stream. `steps` and `key_steps` hold them packed: hours of film are some kilobytes."""

    time_base: Fraction
    frames: int  # with a time of their own
    steps: str
    key_steps: str
    rate: Fraction | None  # of the source; None: variable
    shown_rate: Fraction  # of the output
    last_duration: int  # of the last frame, in ticks
    repeated: int = 0  # frames whose time another one has
    untimed: int = 0  # frames without a time
    damaged: int = 0
    remuxed: bool = False
    second_fields: int = 0  # packets that are no frame of their own
    unordered: bool = False  # times are in the order of decoding, not of showing
    lead: int = 0  # output frames that show the first picture before its time, because the sound starts earlier

    @property
    def pts(self) -> tuple[int, ...]:
        """When each frame is shown, ascending, none twice."""
        return _unpacked(self.steps)

    @property
    def keys(self) -> tuple[int, ...]:
        return _unpacked(self.key_steps)

    @property
    def start(self) -> Fraction:
        """When the first frame is shown, in seconds on the container's clock."""
        return self.pts[0] * self.time_base

    @property
    def needs_remux(self) -> bool:
        """Missing or repeated times, or two packets for one frame: a stream copy may cure it."""
        return self._is_flawed and not self.remuxed

    @property
    def sequential(self) -> bool:
        """Times are wrong in the copy, too: seeking is not to be trusted, so one chunk reads from the beginning."""
        return self._is_flawed and self.remuxed

    @property
    def _is_flawed(self) -> bool:
        return bool(self.repeated or self.untimed or self.second_fields or self.unordered)

    @property
    def length(self) -> Fraction:
        """From the first frame to the end of the last, in seconds."""
        if self.rate is not None:
            return self.frames / self.rate
        return (self.pts[-1] - self.pts[0] + self.last_duration) * self.time_base

    @property
    def shown_frames(self) -> int:
        """Frames of the output: up to the end of the last frame of the source."""
        if self.rate is not None:
            return max(1, ceil(self.length * self.shown_rate))
        return max(self._ticks(self.shown_rate)[-1] + 1, round(self.length * self.shown_rate))

    def times_of(self, timing: Timing, ticks: range | None = None) -> tuple[int, ...]:
        """The source PTS of each output frame, or of those in `ticks`."""
        ticks = range(timing.frames) if ticks is None else ticks
        late = [max(0, k - self.lead) for k in ticks]
        pts, last = self.pts, self.frames - 1
        if self.rate is not None:
            ratio = self.rate / timing.rate
            # A tick behind the last frame shows it once more.
            return tuple(pts[min(k * ratio.numerator // ratio.denominator, last)] for k in late)
        placed = self._ticks(timing.rate)
        return tuple(pts[bisect_right(placed, k) - 1] for k in late)

    def with_neighbours(self, timing: Timing, ticks: range) -> range:
        """These output frames, and so many before and after that the source's frames beside them are among them."""

        def shown_at(tick: int) -> int:
            return self.times_of(timing, range(tick, tick + 1))[0]

        before, after = range(ticks.start), range(ticks.stop, timing.frames)
        start = bisect_left(before, shown_at(ticks.start), key=shown_at) - 1
        more = bisect_right(after, shown_at(ticks.stop - 1), key=shown_at) + 1
        return range(max(0, start), min(timing.frames, ticks.stop + more))

    def _ticks(self, rate: Fraction) -> Sequence[int]:
        return _assigned(self.steps, 1 / (rate * self.time_base))

    def head_start(self, timing: Timing, tick: int) -> int:
        """How many frames of the source must be decoded before that of this output frame: from its keyframe on."""
        [at] = self.times_of(timing, range(tick, tick + 1))
        keys = self.keys
        key = keys[max(0, bisect_right(keys, at) - 1)] if keys else self.pts[0]
        return max(0, bisect_left(self.pts, at) - bisect_left(self.pts, key))

    def drops(self, times: Sequence[int]) -> bool:
        """Whether the source has frames between these that nobody shows."""
        between = bisect_left(self.pts, times[-1]) - bisect_left(self.pts, times[0]) + 1
        return self.sequential or len(set(times)) < between

    def keys_for(self, times: Sequence[int]) -> tuple[int, ...]:
        """Seek points: the last one at or before the first time, two more before it, and those inside."""
        keys = self.keys
        if self.sequential:
            return keys[:1]
        return keys[max(0, bisect_right(keys, times[0]) - 1 - SPARE_KEYS) : bisect_right(keys, times[-1])]


def build_index(packets: Packets, *, declared: Fraction | None = None, remuxed: bool = False) -> Index:
    """Put in order what a demuxer saw; `declared` is the rate that the container claims."""
    pts = sorted(set(packets.pts))
    if not pts:
        raise MediaRefused("the video stream has no frame with a time; check that the file is whole", code="no_frames")
    rate = _rate_of(pts, packets, declared)
    even = rate or fit_with_gaps(pts, packets.time_base, declared)
    shown = output_rate(even) if even else snap(typical(pts, packets.time_base))
    return Index(
        time_base=packets.time_base,
        frames=len(pts),
        steps=_packed(pts),
        key_steps=_packed(sorted(set(packets.keys))),
        rate=rate,
        shown_rate=shown,
        last_duration=packets.last_duration if packets.last_duration > 0 else _one_frame(shown, packets.time_base),
        repeated=len(packets.pts) - len(pts),
        untimed=packets.untimed,
        damaged=packets.damaged,
        remuxed=remuxed,
        second_fields=packets.second_fields,
        unordered=packets.unordered,
    )


def _rate_of(pts: Sequence[int], packets: Packets, declared: Fraction | None) -> Fraction | None:
    if len(pts) > 1:
        return fit(pts, packets.time_base, declared)
    # One picture: as long as it claims to last. One tick of the clock is no claim: so WebM and ASF leave it open.
    lasting = fit((0, packets.last_duration), packets.time_base, declared) if packets.last_duration > 0 else None
    return next((rate for rate in (lasting, declared) if rate is not None and rate <= FASTEST), DEFAULT_RATE)


def _one_frame(rate: Fraction, time_base: Fraction) -> int:
    return max(1, round(1 / (rate * time_base)))


def _packed(times: Sequence[int]) -> str:
    steps = (*times[:1], *(after - before for before, after in pairwise(times)))
    return b64encode(zlib.compress(" ".join(map(str, steps)).encode())).decode()


@lru_cache(maxsize=8)
def _unpacked(text: str) -> tuple[int, ...]:
    steps: Iterable[bytes] = zlib.decompress(b64decode(text)).split()
    return tuple(accumulate(map(int, steps)))


@lru_cache(maxsize=8)
def _assigned(steps: str, per_tick: Fraction) -> Sequence[int]:
    return assign_ticks(_unpacked(steps), per_tick)
