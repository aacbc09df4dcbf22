"""Films as facts, without any bytes: for tests of what is said about them."""

from dataclasses import replace
from fractions import Fraction

from telecine.media.hls.playlists import Kind
from telecine.media.hls.recorded_film import AudioRendition, Film, RecordedSegment, VideoRendition
from telecine.media.orders import AudioTrackOrder, Init, Rung, Timing

NTSC = Fraction(24000, 1001)


def uri(kind: Kind, rung: str, number: int) -> str:
    return {
        "media": f"{rung}/index.m3u8",
        "iframes": f"{rung}/iframe.m3u8",
        "init": "init.mp4",
        "segment": f"{number}.m4s",
    }[kind]


def an_init(name: str, codecs: str, timescale: int) -> Init:
    return Init(name=name, path="", size=700, sha256="0" * 64, codecs=codecs, timescale=timescale)


def a_timing(rate: Fraction = NTSC, *, segments: int = 3, last: int = 144) -> Timing:
    return Timing(rate=rate, frames=144 * (segments - 1) + last, gop=48, per_segment=144)


def a_video(
    name: str = "540p", *, sizes: tuple[int, ...] = (60_000,) * 3, timing: Timing | None = None
) -> VideoRendition:
    timing = timing or a_timing()
    height = int(name.removesuffix("p"))
    rung = Rung(name=name, width=height * 16 // 9, height=height, crf=23, maxrate=height * 4000, bufsize=0, level="3.1")
    pieces = tuple(
        RecordedSegment(
            number=number,
            size=size,
            duration=len(timing.frames_of(number)) * timing.step,
            fragments=tuple((size // 3 * at, size // 3, 48, 1000 + at) for at in range(3)),
        )
        for number, size in enumerate(sizes)
    )
    return VideoRendition(rung=rung, init=an_init(name, "avc1.64001f", timing.timescale), pieces=pieces)


def an_audio(
    name: str = "audio-eng-2", *, frames: tuple[int, ...] = (282, 281, 282), **about: object
) -> AudioRendition:
    pieces = tuple(RecordedSegment(number=at, size=96_000, duration=1024 * many) for at, many in enumerate(frames))
    given = AudioRendition(
        track=AudioTrackOrder(name=name),
        init=an_init(name, "mp4a.40.2", 48_000),
        pieces=pieces,
        language="eng",
        default=True,
    )
    return replace(given, **about)


def a_film(
    *videos: VideoRendition, audios: tuple[AudioRendition, ...] = (an_audio(),), timing: Timing | None = None
) -> Film:
    return Film(timing=timing or a_timing(), videos=videos or (a_video(),), audios=audios)


def upto(film: Film, most: int) -> Film:
    """The film when only so many segments of it are there."""
    return replace(
        film,
        videos=tuple(replace(one, pieces=one.pieces[:most]) for one in film.videos),
        audios=tuple(replace(one, pieces=one.pieces[:most]) for one in film.audios),
    )
