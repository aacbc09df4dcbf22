"""The index: which frames a source has and when each is shown. From here on everything counts frames of the output.

    source PTS    0     41    83    125 …            constant: frame n of the output is frame n of the source
    output tick   0     1     2     3                variable: the latest frame that is not later than the tick

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
from telecine.media.rates import fit, output_rate, snap, typical
from telecine.media.source import Packets

DEFAULT_RATE = Fraction(25)
# Seek points before the wanted one: some demuxers land behind where they were told to.
SPARE_KEYS = 2


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
        """Missing or repeated times: a stream copy may cure it."""
        return self._is_flawed and not self.remuxed

    @property
    def sequential(self) -> bool:
        """Times are wrong in the copy, too: seeking is not to be trusted, so one chunk reads from the beginning."""
        return self._is_flawed and self.remuxed

    @property
    def _is_flawed(self) -> bool:
        return bool(self.repeated or self.untimed)

    @property
    def length(self) -> Fraction:
        """From the first frame to the end of the last, in seconds."""
        if self.rate is not None:
            return self.frames / self.rate
        return (self.pts[-1] - self.pts[0] + self.last_duration) * self.time_base

    @property
    def shown_frames(self) -> int:
        """Frames of the output: up to the end of the last frame of the source."""
        return max(1, ceil(self.length * self.shown_rate))

    def times_of(self, timing: Timing, ticks: range | None = None) -> tuple[int, ...]:
        """The source PTS of each output frame, or of those in `ticks`."""
        ticks = range(timing.frames) if ticks is None else ticks
        pts, last = self.pts, self.frames - 1
        if self.rate is not None:
            ratio = self.rate / timing.rate
            # A tick behind the last frame shows it once more.
            return tuple(pts[min(k * ratio.numerator // ratio.denominator, last)] for k in ticks)
        per_frame = 1 / (timing.rate * self.time_base)
        numerator, denominator = per_frame.numerator, per_frame.denominator
        return tuple(pts[bisect_right(pts, pts[0] + k * numerator // denominator) - 1] for k in ticks)

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
    shown = output_rate(rate) if rate else snap(typical(pts, packets.time_base))
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
    )


def _rate_of(pts: Sequence[int], packets: Packets, declared: Fraction | None) -> Fraction | None:
    if len(pts) > 1:
        return fit(pts, packets.time_base, declared)
    # One picture: as long as it claims to last.
    lasting = fit((0, packets.last_duration), packets.time_base, declared) if packets.last_duration > 0 else None
    return lasting or declared or DEFAULT_RATE


def _one_frame(rate: Fraction, time_base: Fraction) -> int:
    return max(1, round(1 / (rate * time_base)))


def _packed(times: Sequence[int]) -> str:
    steps = (*times[:1], *(after - before for before, after in pairwise(times)))
    return b64encode(zlib.compress(" ".join(map(str, steps)).encode())).decode()


@lru_cache(maxsize=8)
def _unpacked(text: str) -> tuple[int, ...]:
    steps: Iterable[bytes] = zlib.decompress(b64decode(text)).split()
    return tuple(accumulate(map(int, steps)))
