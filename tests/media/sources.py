"""A small film of every kind that must come out right, and files that must be refused: what each is, and what of it.

`KINDS` is the registry. A film lasts 3.4 s, so that with segments of 1 s in chunks of two there are two chunks, and a
last segment that is shorter than the others.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from random import Random

from tests.media import corrupt, corrupt_ts
from tests.media.make_video import Film, Shot, Voice, shoot

NTSC = Fraction(1000, 1001)
X264_OPEN = {"x264-params": "keyint=24:min-keyint=24:scenecut=0:open-gop=1:bframes=3:b-adapt=0"}
X264_B = {"x264-params": "keyint=30:min-keyint=30:scenecut=0:bframes=3:b-adapt=0"}
X265 = {"x265-params": "log-level=none:pools=1:frame-threads=1:keyint=24:min-keyint=24:scenecut=0:open-gop=1:bframes=3"}
OPUS = (Voice(codec="libopus"),)
MP3 = (Voice(codec="mp3"),)
MP3_LATE = Fraction(1105, 48_000)  # AVI cannot say how late the coder is
SVT = {"crf": "20", "preset": "10", "svtav1-params": "lp=1:keyint=24:enable-tf=0"}


@dataclass(frozen=True, kw_only=True)
class Kind:
    """A file, and what must come of it.

    `numbers` are the coded numbers of the frames that a viewer sees, in order, and `seconds` when, counted from the
    first. `rate` is the output's; None: the source has no constant one, and the planner chooses.
    """

    name: str
    suffix: str
    make: Callable[[Path], Path]
    numbers: tuple[int, ...] = ()
    seconds: tuple[Fraction, ...] = ()
    rate: Fraction | None = None
    shown: tuple[int, int] = (320, 180)
    voices: tuple[Voice, ...] = ()
    refused: str | None = None  # the code that its probe or its scan answers
    damaged: bool = False  # what can be read of it must not pass for the whole
    untouched: bool = True  # the shown pictures are the decoded ones: not turned, scaled or converted
    begins: Fraction = Fraction(0)  # which second of the film the first shown frame is
    length: Fraction = Fraction(0)  # of the film as it was shot
    late: Fraction = Fraction(0)  # how late its sound is by its coder's delay, where the container cannot say so

    def heard(self, voice: Voice) -> list[int]:
        """Which seconds of the film this voice announces with a burst, where a viewer hears it."""
        end = self.length if voice.length is None else min(self.length, voice.start + voice.length)
        return [second for second in range(math.ceil(end)) if max(voice.start, self.begins) <= second < end]


KINDS: dict[str, Kind] = {}


def _kind(name: str, suffix: str, film: Film, after: Callable[[Path], Path] | None = None, **differs: object) -> None:
    """A film as written, changed by `after`. Everything that is not said follows from the film."""
    numbers = tuple(number for shot in film.shots for number in range(shot.first, shot.first + shot.count))
    plain = film.turned is None and film.sar is None and film.pixels == "yuv420p" and len(film.shots) == 1
    if film.shots:
        start = film.seconds[0]
        expected: dict[str, object] = {
            "numbers": numbers,
            "seconds": tuple(one - start for one in film.seconds),
            "rate": film.rate if film.times is None else None,
            "shown": film.shots[0].size,
            "untouched": plain,
            "length": film.length,
        }
    else:
        expected = {"shown": (0, 0), "untouched": False, "length": film.voices[0].length}

    def make(path: Path) -> Path:
        written = shoot(path, film)
        return after(written) if after else written

    known = {"voices": film.voices, **expected, **differs}
    KINDS[name] = Kind(name=name, suffix=suffix, make=make, **known)  # type: ignore[arg-type]


def _refused(name: str, suffix: str, code: str, make: Callable[[Path], Path]) -> None:
    KINDS[name] = Kind(name=name, suffix=suffix, make=make, refused=code)


# --- containers and codecs ---------------------------------------------------------------------------------------

PLAIN = Film(options=X264_B)
MUTE = replace(PLAIN, voices=())  # where sound would only repeat what other kinds show
_kind("mp4-h264", "mp4", PLAIN)
_kind("mp4-h264-open-gop", "mp4", replace(PLAIN, options=X264_OPEN))
_kind("mkv-h264-open-gop", "mkv", replace(PLAIN, format="matroska", options=X264_OPEN))
_kind("ts-h264-open-gop", "ts", replace(PLAIN, format="mpegts", options=X264_OPEN))
_kind("mp4-h264-one-keyframe", "mp4", replace(MUTE, options={"x264-params": "keyint=999:bframes=2:scenecut=0"}))
_kind("mp4-h264-all-intra", "mp4", replace(MUTE, options={"x264-params": "keyint=1"}))
_kind("mp4-fragmented", "mp4", replace(PLAIN, muxer={"movflags": "frag_keyframe+delay_moov+default_base_moof"}))
_kind("mov-h264-pcm", "mov", replace(PLAIN, format="mov", voices=(Voice(codec="pcm_s16le"),)))
_kind("mp4-hevc-open-gop", "mp4", replace(MUTE, codec="libx265", options=X265))
_kind("mkv-hevc-open-gop", "mkv", replace(MUTE, format="matroska", codec="libx265", options=X265))
_kind("ts-hevc", "ts", replace(PLAIN, format="mpegts", codec="libx265", options=X265))
_kind("webm-vp9", "webm", Film(format="webm", codec="libvpx-vp9", voices=OPUS))
VP9_ALTREF = {"lag-in-frames": "16", "auto-alt-ref": "1", "deadline": "good"}
_kind("webm-vp9-hidden-frames", "webm", Film(format="webm", codec="libvpx-vp9", voices=(), options=VP9_ALTREF))
_kind("mp4-av1", "mp4", Film(codec="libsvtav1", options=SVT, voices=()))
_kind("mkv-av1", "mkv", Film(format="matroska", codec="libsvtav1", options=SVT, voices=OPUS))
MPEG2 = Film(codec="mpeg2video", format="mpegts", settings={"bit_rate": 1_500_000, "max_b_frames": 2, "gop_size": 15})
_kind("ts-mpeg2-open-gop", "ts", replace(MPEG2, voices=(Voice(codec="mp2"),)))
_kind("mkv-mpeg2", "mkv", replace(MPEG2, format="matroska", voices=(Voice(codec="ac3"),)))
MPEG4 = Film(codec="mpeg4", format="avi", voices=MP3, settings={"bit_rate": 800_000})
_kind("avi-mpeg4", "avi", replace(MPEG4, voices=(Voice(codec="pcm_s16le"),)))
# MP3 begins before the film; to shift all into the positive, the muxer leaves the second place of the video empty.
_kind(
    "avi-mpeg4-dropped-frame", "avi", MPEG4, rate=None, late=MP3_LATE,
    seconds=tuple(Fraction(n, 25) for n in (0, *range(2, 86))),
)  # fmt: skip
_kind("avi-mpeg4-b-frames", "avi", replace(MPEG4, settings={"bit_rate": 800_000, "max_b_frames": 2}), late=MP3_LATE)
_kind("avi-h264-b-frames", "avi", replace(PLAIN, format="avi", voices=MP3), late=MP3_LATE)
_kind("mp4-mpeg4", "mp4", replace(MPEG4, format="mp4", voices=()))

# --- rates -------------------------------------------------------------------------------------------------------


def _at(rate: Fraction, **differs: object) -> Film:
    shots = (Shot(count=int(rate * Fraction(34, 10)) + 1),)
    return replace(PLAIN, rate=rate, shots=shots, **differs)  # type: ignore[arg-type]


_kind("mkv-23.976", "mkv", _at(24 * NTSC, format="matroska"))
_kind("mp4-23.976", "mp4", _at(24 * NTSC, voices=()))
_kind("mp4-29.97", "mp4", _at(30 * NTSC))
_kind("mkv-29.97", "mkv", _at(30 * NTSC, format="matroska", voices=()))
_kind("mp4-50", "mp4", _at(Fraction(50), voices=()))
_kind("ts-59.94", "ts", _at(60 * NTSC, format="mpegts"))
_kind("mkv-60", "mkv", _at(Fraction(60), format="matroska", voices=()))
FAST = _at(Fraction(120), voices=())
_kind(
    "mp4-120", "mp4", FAST, rate=Fraction(60), numbers=tuple(range(0, FAST.count, 2)), seconds=FAST.seconds[::2]
)  # fmt: skip


def _phone() -> tuple[int, ...]:
    """A phone's camera: about 30 frames a second, a few milliseconds of jitter, and now and then none for a while."""
    dice, now, times = Random(7), 0, []
    for n in range(90):
        times.append(now)
        now += 3000 + dice.randint(-260, 260) + (3000 * dice.randint(1, 4) if n % 23 == 22 else 0)
    return tuple(times)


PHONE = replace(
    PLAIN, rate=Fraction(30), times=_phone(), clock=Fraction(1, 90_000), shots=(Shot(count=90),),
    options={"x264-params": "keyint=30:bframes=0"}, muxer={"video_track_timescale": "90000"},
)  # fmt: skip
_kind("mp4-vfr-phone", "mp4", PHONE)
IN_MS = tuple(round(Fraction(one, 90)) for one in PHONE.times or ())
_kind(
    "mkv-vfr-phone",
    "mkv",
    replace(PHONE, format="matroska", times=IN_MS, clock=Fraction(1, 1000), muxer={}, options=X264_B),
)
SLIDES = replace(
    PHONE, times=(0, 63_000, 153_000, 162_000, 261_000), shots=(Shot(count=5),), rate=Fraction(1)
)  # fmt: skip
_kind("mp4-vfr-slideshow", "mp4", SLIDES)

# --- shapes ------------------------------------------------------------------------------------------------------

UPRIGHT = (Shot(count=85, size=(180, 320)),)
for _degrees, _turned in ((90, "transpose=2"), (180, "hflip,vflip"), (270, "transpose=1")):
    _kind(
        f"mp4-turned-{_degrees}", "mp4",
        replace(MUTE, turned=_turned, shots=MUTE.shots if _degrees == 180 else UPRIGHT),
        corrupt.turned(_degrees), untouched=False,
    )  # fmt: skip
_kind("mp4-portrait", "mp4", replace(MUTE, shots=UPRIGHT))
_kind(
    "mp4-anamorphic", "mp4", replace(MUTE, sar=Fraction(4, 3), shots=(Shot(count=85, size=(240, 180)),)),
    shown=(320, 180),
)  # fmt: skip
_kind(
    "mkv-anamorphic-tall", "mkv",
    replace(MUTE, format="matroska", sar=Fraction(2, 3), shots=(Shot(count=85, size=(320, 120)),)), shown=(320, 180),
)  # fmt: skip
_kind("mp4-h264-10-bit", "mp4", replace(MUTE, pixels="yuv420p10le"))
_kind("mkv-hevc-10-bit", "mkv", replace(MUTE, format="matroska", codec="libx265", options=X265, pixels="yuv420p10le"))
ODD = (Shot(count=85, size=(321, 181)),)
_kind(
    "webm-vp9-odd-size", "webm", Film(format="webm", codec="libvpx-vp9", voices=(), shots=ODD), untouched=False
)  # fmt: skip
_kind("mp4-h264-444-odd-size", "mp4", replace(MUTE, pixels="yuv444p", shots=ODD))
_kind(
    "mkv-hevc-hdr", "mkv",
    replace(
        MUTE, format="matroska", codec="libx265", options=X265, pixels="yuv420p10le",
        settings={"color_primaries": 9, "color_trc": 16, "colorspace": 9},
    ),
)  # fmt: skip
_kind(
    "ts-mpeg2-interlaced", "ts",
    replace(MPEG2, options={"flags": "+ildct+ilme", "field_order": "tt"}, voices=()),
    untouched=False,
)  # fmt: skip
GROWS = (Shot(count=40), Shot(count=45, size=(640, 360), first=40))
_kind("ts-size-change", "ts", replace(MUTE, format="mpegts", shots=GROWS))
_kind("mkv-size-change", "mkv", replace(MUTE, format="matroska", shots=GROWS))
_kind("mp4-shorter-than-a-segment", "mp4", replace(MUTE, shots=(Shot(count=10),)))
_kind("mp4-one-frame", "mp4", replace(MUTE, shots=(Shot(count=1),), voices=()))

# --- times -------------------------------------------------------------------------------------------------------

TRIM = Fraction(18, 25)
_kind(
    "mp4-trimmed", "mp4", PLAIN, corrupt.trimmed(TRIM), numbers=tuple(range(18, 85)), seconds=PLAIN.seconds[:67],
    begins=TRIM,
)  # fmt: skip
_kind(
    "mov-trimmed-open-gop", "mov",
    replace(PLAIN, format="mov", options=X264_OPEN, voices=()), corrupt.trimmed(Fraction(1)), begins=Fraction(1),
    numbers=tuple(range(25, 85)), seconds=PLAIN.seconds[:60],
)  # fmt: skip
_kind("ts-starts-at-10-s", "ts", replace(PLAIN, format="mpegts", start=Fraction(10)))
_kind("mkv-starts-at-10-s", "mkv", replace(PLAIN, format="matroska", start=Fraction(10)))
LATER, EARLIER = (Voice(start=Fraction(1, 2)),), (Voice(start=Fraction(-1, 2)),)
_kind("mp4-audio-later", "mp4", replace(PLAIN, voices=LATER))
_kind("ts-audio-later", "ts", replace(PLAIN, format="mpegts", voices=LATER, start=Fraction(10)))
_kind("mkv-audio-earlier", "mkv", replace(PLAIN, format="matroska", voices=EARLIER, start=Fraction(1)))
_kind("ts-audio-earlier", "ts", replace(PLAIN, format="mpegts", voices=EARLIER, start=Fraction(10)))
_kind("mp4-audio-short", "mp4", replace(PLAIN, voices=(Voice(length=Fraction(2)),)))
_kind("mkv-audio-long", "mkv", replace(PLAIN, format="matroska", voices=(Voice(length=Fraction(5)),)))
_kind("ts-missing-pts", "ts", replace(PLAIN, format="mpegts"), corrupt_ts.without_some_times)
_kind("mp4-no-composition-offsets", "mp4", PLAIN, corrupt.without_offsets)
_kind("mkv-repeated-pts", "mkv", replace(PHONE, format="matroska", times=None, clock=None, muxer={}), corrupt.repeated)

# --- tracks ------------------------------------------------------------------------------------------------------

_kind("mp4-no-audio", "mp4", replace(PLAIN, voices=()))
_kind("mp4-mono", "mp4", replace(PLAIN, voices=(Voice(channels=1),)))
_kind("mkv-5.1", "mkv", replace(PLAIN, format="matroska", voices=(Voice(channels=6, codec="ac3"),)))
_kind("mp4-44100", "mp4", replace(PLAIN, voices=(Voice(rate=44_100),)))
TONGUES = (Voice(language="eng"), Voice(language="deu", hum=330, channels=1), Voice(language="fra", hum=440))
_kind("mkv-three-languages", "mkv", replace(PLAIN, format="matroska", voices=TONGUES))
_kind("m4a-audio-only", "m4a", Film(format="mp4", shots=(), voices=(Voice(length=Fraction(34, 10)),)))
_kind("mp3-audio-only", "mp3", Film(format="mp3", shots=(), voices=(Voice(codec="mp3", length=Fraction(34, 10)),)))
_kind("mp4-cover-first", "mp4", PLAIN, corrupt.with_cover)
_kind("m4a-cover", "m4a", Film(format="mp4", shots=(), voices=(Voice(length=Fraction(34, 10)),)), corrupt.with_cover)

# --- damaged: fails or warns, never a silent half film -----------------------------------------------------------

_kind("mp4-damaged-tail", "mp4", replace(PLAIN, muxer={"movflags": "faststart"}), corrupt.cut, damaged=True)
_kind("mkv-damaged-tail", "mkv", replace(PLAIN, format="matroska"), corrupt.cut, damaged=True)
_kind("ts-damaged-tail", "ts", replace(PLAIN, format="mpegts"), corrupt.cut, damaged=True)
SOUND = Film(format="mp4", shots=(), voices=(Voice(length=Fraction(34, 10)),), muxer={"movflags": "faststart"})
_kind("m4a-damaged-tail", "m4a", SOUND, corrupt.cut, damaged=True)
_kind("mp4-damaged-middle", "mp4", replace(PLAIN, muxer={"movflags": "faststart"}), corrupt.blotted, damaged=True)

# --- refused -----------------------------------------------------------------------------------------------------

_refused("empty", "mp4", "not_media", corrupt.empty)
_refused("text", "mp4", "not_media", corrupt.text)
_refused("noise", "mkv", "not_media", corrupt.noise)
_refused("zeros", "mp4", "not_media", corrupt.zeros)
_refused("picture", "mp4", "not_media", corrupt.picture)
_refused("hls-manifest", "mp4", "not_media", corrupt.hls)
_refused("dash-manifest", "mp4", "not_media", corrupt.dash)
_refused("concat-script", "mp4", "not_media", corrupt.concat)
_refused("session-description", "mp4", "not_media", corrupt.sdp)
_refused("mp4-without-its-index", "mp4", "damaged", lambda path: corrupt.cut(shoot(path, PLAIN)))
_refused("encrypted", "mp4", "encrypted", lambda path: corrupt.encrypted(shoot(path, PLAIN)))
_refused("subtitles-only", "mkv", "no_streams", corrupt.subtitles)

FILMS = {name: kind for name, kind in KINDS.items() if kind.refused is None}
REFUSED = {name: kind for name, kind in KINDS.items() if kind.refused is not None}
