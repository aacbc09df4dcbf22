"""What the media child is told to do, one order per process, and what it answers. All of it travels as JSON.

The child says lines: `{"segment": …}`, `{"init": …}`, `{"progress": frames}`, `{"note": text}`,
`{"rung_failed": {"rung", "code", "message"}}`, and at last `{"done": result}` or `{"error": {"code", "message",
"permanent"}}`. A `segment` line must be answered by `{"ack": [rung, number]}` before the same rung may close the one
after the next: that is the back-pressure.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import ceil
from typing import Any, ClassVar

from telecine.media.plain_json import to_plain
from telecine.media.source import Picture, Sound

MIN_STEP = 10  # ticks per frame


LATE_STREAMS = (
    "the file has streams that begin in its middle"  # a note of the remuxer: only a thorough probe finds them
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ChildLimits:
    """What a child may use before it is ended. Bytes and seconds; None: no limit."""

    memory: int | None = 2 << 30
    cpu_seconds: int | None = None
    file_bytes: int | None = None
    threads: int = 1  # per decoder and encoder


@dataclass(frozen=True, slots=True, kw_only=True)
class Rung:
    """One rendition of a ladder, as it is encoded; equal in all chunks, or their pieces would not fit together."""

    name: str
    width: int
    height: int
    crf: int
    maxrate: int  # bits per second, of the file: no film averages more
    bufsize: int
    level: str  # "3.1"
    profile: str = "high"
    preset: str = "veryfast"
    refs: int = 2
    bframes: int = 3
    family: str = "x264"  # see families.py: which encoder; never two in one rendition
    required: bool = True
    lossless: bool = False  # for proofs: crf 0 with a profile that allows it
    colour: tuple[int, int, int] = (1, 1, 1)  # primaries, transfer, matrix of the output; see colour.py
    scaled_from: tuple[int, int] | None = None  # the size of the picture that it is made from; None: the source's
    tone_mapped_at: tuple[int, int] | None = None  # the size at which HDR becomes SDR for all rungs; None: the source's

    @property
    def encoder_maxrate(self) -> int:
        """What the encoder is told, so that `maxrate` holds with the boxes around its frames and its small excess."""
        return self.maxrate * 97 // 100

    @property
    def encoder_occupancy(self) -> int:
        """Bits in the rate buffer when a chunk begins: the level at which film that fills the rate keeps it.

        A fuller one, which is the encoder's own choice, gives every chunk bits that the cap does not have.
        """
        return self.bufsize * 2 // 5

    def peak_over(self, seconds: Fraction) -> int:
        """The bit rate that no stretch of this length exceeds: the rate, and a buffer that was full before it."""
        return ceil(self.maxrate + self.bufsize / seconds)


@dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    """The frame grid that all rungs share. Frame n is shown at n / rate."""

    rate: Fraction
    frames: int  # of the whole film
    gop: int  # frames between keyframes
    per_segment: int  # frames, a multiple of gop

    @property
    def segments(self) -> int:
        return -(-self.frames // self.per_segment)

    @property
    def timescale(self) -> int:
        """Ticks per second of the video tracks; a frame has enough of them for `decode_times`."""
        return self.rate.numerator * (1 if self.rate.denominator >= MIN_STEP else 1000)

    @property
    def step(self) -> int:
        """Ticks per frame."""
        return int(self.timescale / self.rate)

    def frames_of(self, segment: int) -> range:
        return range(segment * self.per_segment, min((segment + 1) * self.per_segment, self.frames))


@dataclass(frozen=True, slots=True, kw_only=True)
class MissingSegments:
    """The part of one rung that a chunk still lacks. Empty rungs are left out of the order."""

    rung: Rung
    segments: tuple[int, ...]
    init: str | None = None  # SHA-256 of the rung's init; None: not known yet


@dataclass(frozen=True, slots=True, kw_only=True)
class EncodeVideo:
    """Encode the missing segments of one chunk, for every rung, from one decode.

    `times[i]` is the source PTS of output frame `first + i`; a frame that stands there twice is shown twice. With
    `drops`, the source has frames between them that nobody shows; without, each decoded frame must be the next.
    """

    op: ClassVar[str] = "video"
    picture: Picture
    format: str
    timing: Timing
    first: int
    times: tuple[int, ...]
    keys: tuple[int, ...]  # PTS to seek to, ascending, from the last one at or before times[0], and two before it
    drops: bool
    wanted: tuple[MissingSegments, ...]
    limits: ChildLimits = ChildLimits()
    size: int | None = None  # bytes of the source; needed if it is asked for in ranges
    mend: bool = False  # damage is allowed: the frame before stands in for one that cannot be decoded


@dataclass(frozen=True, slots=True, kw_only=True)
class AudioTrackOrder:
    """One audio rendition."""

    name: str  # "audio-eng-2"
    channels: int = 2
    bitrate: int = 128_000
    sample_rate: int = 48_000


@dataclass(frozen=True, slots=True, kw_only=True)
class EncodeAudio:
    """Encode one whole track and cut it on the video's grid. Segments that it has already are not said again.

    The film begins at `start`: what sounds earlier is cut, a later begin is filled with silence. The film is `length`
    seconds long: the track is cut there, and one that ends earlier is filled up to it. `borders[k]` is when segment k
    begins, in seconds; the last segment lasts to the end.
    """

    op: ClassVar[str] = "audio"
    sound: Sound
    format: str
    track: AudioTrackOrder
    start: int  # PTS of the film's first moment in the stream's time base
    length: Fraction
    borders: tuple[Fraction, ...]
    have: tuple[int, ...] = ()
    limits: ChildLimits = ChildLimits()
    size: int | None = None  # bytes of the source; needed if it is asked for in ranges


@dataclass(frozen=True, slots=True, kw_only=True)
class Segment:
    """A segment as the child made it: a file in the scratch folder, whole and flushed.

    `fragments` are its moof+mdat pairs: offset, size, frames, and the size up to the end of the first sample, which is
    a keyframe; I-frame playlists are made of them.
    """

    rung: str
    number: int
    path: str
    size: int
    sha256: str
    frames: int
    start: int  # tfdt of the first fragment, in ticks of the track
    duration: int  # in ticks
    fragments: tuple[tuple[int, int, int, int], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Init:
    """The init segment of a rung or track, and what a playlist says about it."""

    name: str
    path: str
    size: int
    sha256: str
    codecs: str
    timescale: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Probe:
    """Read the head; answer a `Source`."""

    op: ClassVar[str] = "probe"
    size: int
    thorough: bool = False  # read all of the file: some tracks begin in its middle
    limits: ChildLimits = ChildLimits(memory=1 << 30, cpu_seconds=30)


@dataclass(frozen=True, slots=True, kw_only=True)
class Scan:
    """Read every packet without decoding; write `Packets` and `Samples` as `index.json` into the scratch folder."""

    op: ClassVar[str] = "scan"
    format: str
    picture: Picture | None
    sounds: tuple[Sound, ...]
    limits: ChildLimits = ChildLimits()
    size: int | None = None  # bytes of the source; needed if it is asked for in ranges


@dataclass(frozen=True, slots=True, kw_only=True)
class Remux:
    """Copy the streams into a Matroska file `remuxed.mkv` in the scratch folder, in which one can seek."""

    op: ClassVar[str] = "remux"
    format: str
    streams: tuple[int, ...]
    thorough: bool = False  # as the probe was that found the streams
    limits: ChildLimits = ChildLimits()
    size: int | None = None  # bytes of the source; needed if it is asked for in ranges


@dataclass(frozen=True, slots=True, kw_only=True)
class MakeInits:
    """Encode one black frame per rung, and silence per track: answers the `Init` of each."""

    op: ClassVar[str] = "inits"
    rate: Fraction
    gop: int
    rungs: tuple[Rung, ...]
    tracks: tuple[AudioTrackOrder, ...]
    limits: ChildLimits = ChildLimits()


@dataclass(frozen=True, slots=True, kw_only=True)
class Still:
    """A picture to decode: the first frame of a file in the scratch folder (init and fragment joined)."""

    file: str
    at: Fraction


@dataclass(frozen=True, slots=True, kw_only=True)
class MakePoster:
    """Choose the best of the candidates and write it as JPEG, `poster.jpg` and, half as wide, `poster_small.jpg`."""

    op: ClassVar[str] = "poster"
    stills: tuple[Still, ...]
    width: int = 1280
    limits: ChildLimits = ChildLimits()


@dataclass(frozen=True, slots=True, kw_only=True)
class MakeSprites:
    """Tile the stills, in order, into JPEG sheets `sheet_000.jpg` … of columns × rows."""

    op: ClassVar[str] = "sprites"
    stills: tuple[Still, ...]
    width: int
    height: int
    columns: int = 10
    rows: int = 10
    limits: ChildLimits = ChildLimits()


@dataclass(frozen=True, slots=True, kw_only=True)
class Decode:
    """Decode these files of the scratch folder (init and segments joined) and count their frames.

    Whatever the decoder complains about is an error, and so is another count than `frames`.
    """

    op: ClassVar[str] = "decode"
    files: tuple[str, ...]
    frames: tuple[int, ...]
    limits: ChildLimits = ChildLimits()


ORDERS: tuple[Any, ...] = (Probe, Scan, Remux, MakeInits, EncodeVideo, EncodeAudio, MakePoster, MakeSprites, Decode)


def plain_order(order: Any) -> dict[str, Any]:
    """An order as it travels: its operation beside its fields."""
    return {"op": order.op, **to_plain(order)}
