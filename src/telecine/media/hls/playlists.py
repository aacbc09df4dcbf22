"""Playlists: recorded facts in, HLS text out (RFC 8216, and Apple's authoring rules by number). No clock, no files.

    master.m3u8 ─┬─▶ media list per rung  ──▶ init, segments
                 ├─▶ I-frame list per rung ─▶ byte ranges of the same segments
                 └─▶ media list per audio track

A `Film` that is `growing` becomes EVENT lists without an end and a master with planned figures; else VOD lists and
measured ones. Where things lie is the caller's affair: `uri` says how a list names a file, relative to that list.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from fractions import Fraction
from math import ceil
from typing import Literal, Protocol

from telecine.errors import MediaError
from telecine.media import languages
from telecine.media.hls.recorded_film import (
    AudioRendition,
    Film,
    RecordedSegment,
    Rendition,
    VideoRendition,
    average,
    nearest,
    parts_of,
    peak,
    seconds,
    unbroken,
)

Kind = Literal["media", "iframes", "init", "segment"]
VERSION = 7  # EXT-X-MAP in a list that is not of I-frames needs 6; CMAF players expect 7
GROUP = "audio"
SOUND = Fraction(105, 100)  # what a track needs at most, with its boxes, of the bit rate that its coder is told


class Uri(Protocol):
    """How a list names a file: the master names `media` and `iframes`, those lists name `init` and `segment`."""

    def __call__(self, kind: Kind, rung: str, number: int) -> str: ...


# --- master ----------------------------------------------------------------------------------------------------------


def master(film: Film, uri: Uri) -> str:
    """The list that a player opens. While the film grows its figures are the plan's: players read it only once."""
    lines = [*_head(), "#EXT-X-INDEPENDENT-SEGMENTS"]
    if film.videos or len(film.audios) > 1:
        lines += _audio_group(film, uri)
    if not film.videos:
        lines += _only_audio(film, uri)
    for video in film.variants:
        lines += [_tag("EXT-X-STREAM-INF", **_variant(film, video)), uri("media", video.name, 0)]
    for video in film.variants:
        about = _iframe_variant(film, video)
        lines.append(_tag("EXT-X-I-FRAME-STREAM-INF", **about, URI=_quoted(uri("iframes", video.name, 0))))
    return _text(lines)


def _variant(film: Film, video: VideoRendition) -> dict[str, object]:
    return {
        **_rates(film, [video]),
        "CODECS": _quoted(",".join(dict.fromkeys([video.init.codecs, *(one.init.codecs for one in film.audios)]))),
        "RESOLUTION": f"{video.rung.width}x{video.rung.height}",
        "FRAME-RATE": _decimals(film.timing.rate, 3),
        "VIDEO-RANGE": video.range,
        **({"AUDIO": _quoted(GROUP)} if film.audios else {}),
        "CLOSED-CAPTIONS": "NONE",
    }


def _iframe_variant(film: Film, video: VideoRendition) -> dict[str, object]:
    if film.growing:
        rates: dict[str, object] = {"BANDWIDTH": video.rung.peak_over(film.timing.gop / film.timing.rate)}
    else:
        parts = [(size, length) for _, _, size, length in _iframes_of(film, video)]
        rates = {"BANDWIDTH": peak(parts, nearest(part[1] for part in parts)), "AVERAGE-BANDWIDTH": average(parts)}
    return {
        **rates,
        "CODECS": _quoted(video.init.codecs),
        "RESOLUTION": f"{video.rung.width}x{video.rung.height}",
        "VIDEO-RANGE": video.range,
    }


def _rates(film: Film, videos: Sequence[VideoRendition]) -> dict[str, object]:
    """What the worst playable combination needs: the rung and the most expensive audio track."""
    if film.growing:
        planned = [video.rung.peak_over(film.shortest_counted) for video in videos]
        return {"BANDWIDTH": sum(planned) + max((ceil(SOUND * one.track.bitrate) for one in film.audios), default=0)}
    peaks = [peak(parts_of(video), film.target) for video in videos]
    means = [average(parts_of(video)) for video in videos]
    return {
        "BANDWIDTH": sum(peaks) + max((peak(parts_of(one), film.target) for one in film.audios), default=0),
        "AVERAGE-BANDWIDTH": sum(means) + max((average(parts_of(one)) for one in film.audios), default=0),
    }


def _audio_group(film: Film, uri: Uri) -> Iterator[str]:
    for audio, name in zip(film.audios, _names(film.audios), strict=True):
        about: dict[str, object] = {"TYPE": "AUDIO", "GROUP-ID": _quoted(GROUP), "NAME": _quoted(name)}
        language = languages.tag(audio.language)
        if language:
            about["LANGUAGE"] = _quoted(language)
        chosen = audio is film.default_audio
        about |= {"DEFAULT": "YES" if chosen else "NO", "AUTOSELECT": "YES", "CHANNELS": f'"{audio.track.channels}"'}
        if film.videos or not chosen:  # without pictures the default track is the variant itself
            about["URI"] = _quoted(uri("media", audio.name, 0))
        yield _tag("EXT-X-MEDIA", **about)


def _only_audio(film: Film, uri: Uri) -> Iterator[str]:
    default = film.default_audio
    if default is None:
        raise MediaError("a film without any rendition has no master playlist")
    about = {**_rates(film, []), "CODECS": _quoted(",".join(dict.fromkeys(one.init.codecs for one in film.audios)))}
    yield _tag("EXT-X-STREAM-INF", **about, **({"AUDIO": _quoted(GROUP)} if len(film.audios) > 1 else {}))
    yield uri("media", default.name, 0)


def _names(audios: Sequence[AudioRendition]) -> list[str]:
    """A name for each track, as a menu shows it; no two are equal."""
    names: list[str] = []
    for number, audio in enumerate(audios, 1):
        wanted = _clean(audio.title or "") or languages.name(audio.language) or f"Audio {number}"
        names.append(wanted if wanted not in names else f"{wanted} ({number})")
    return names


# --- media -----------------------------------------------------------------------------------------------------------


def media(film: Film, name: str, uri: Uri) -> str:
    """The list of one rendition's segments."""
    one = film.named(name)
    pieces = _ordered(film, one)
    lines = [*_list_head(film, film.target), "#EXT-X-INDEPENDENT-SEGMENTS", _map(one, uri)]
    lengths = _lengths([seconds(piece.duration, one) for piece in pieces])
    for piece, length in zip(pieces, lengths, strict=True):
        lines += [f"#EXTINF:{length},", uri("segment", name, piece.number)]
    return _text(lines + _list_end(film))


def iframes(film: Film, name: str, uri: Uri) -> str:
    """The list of a rung's keyframes: the header and first sample of each fragment, inside the segments."""
    one = film.named(name)
    frames = list(_iframes_of(film, one))
    target = nearest([Fraction(film.timing.gop) / film.timing.rate, *(length for *_, length in frames)])
    lines = [*_list_head(film, target), "#EXT-X-I-FRAMES-ONLY", _map(one, uri)]
    for (number, offset, size, _), length in zip(frames, _lengths([length for *_, length in frames]), strict=True):
        lines += [f"#EXTINF:{length},", f"#EXT-X-BYTERANGE:{size}@{offset}", uri("segment", name, number)]
    return _text(lines + _list_end(film))


def _iframes_of(film: Film, one: Rendition) -> Iterator[tuple[int, int, int, Fraction]]:
    """Segment, offset and size of each keyframe, and the seconds until the next."""
    for piece in _ordered(film, one):
        for offset, _, frames, head in piece.fragments:
            yield piece.number, offset, head, frames / film.timing.rate


def _ordered(film: Film, one: Rendition) -> list[RecordedSegment]:
    pieces = sorted(one.pieces, key=lambda piece: piece.number)
    if unbroken(pieces) != len(pieces) or not (pieces or film.growing):
        raise MediaError(f"{one.name} has a gap: segment {unbroken(pieces)} is missing")
    return pieces


def _list_head(film: Film, target: int) -> list[str]:
    kind = "EVENT" if film.growing else "VOD"
    head = [*_head(), f"#EXT-X-TARGETDURATION:{target}", "#EXT-X-MEDIA-SEQUENCE:0", f"#EXT-X-PLAYLIST-TYPE:{kind}"]
    # Without it a player takes a growing list for a live one and begins near its end.
    return [*head, "#EXT-X-START:TIME-OFFSET=0"] if film.growing else head


def _list_end(film: Film) -> list[str]:
    return [] if film.growing else ["#EXT-X-ENDLIST"]


def _map(one: Rendition, uri: Uri) -> str:
    return _tag("EXT-X-MAP", URI=_quoted(uri("init", one.name, 0)))


# --- text ------------------------------------------------------------------------------------------------------------


def _head() -> list[str]:
    return ["#EXTM3U", f"#EXT-X-VERSION:{VERSION}"]


def _text(lines: Sequence[str]) -> str:
    return "\n".join(lines) + "\n"


def _tag(tag: str, **attributes: object) -> str:
    return f"#{tag}:" + ",".join(f"{name}={value}" for name, value in attributes.items())


def _quoted(text: str) -> str:
    return f'"{_clean(text)}"'


def _clean(text: str) -> str:
    """What may stand between quotes: a title from a stranger's file must not end the line or the quotes."""
    return re.sub(r"[\x00-\x1f\x7f\x85\u2028\u2029]+", " ", text).replace('"', "'").strip()


def _decimals(value: Fraction, places: int) -> str:
    whole, rest = divmod(round(value * 10**places), 10**places)
    return f"{whole}.{rest:0{places}}"


def _lengths(durations: Sequence[Fraction]) -> Iterator[str]:
    """Each duration as text, rounded so that every running sum is exact to a microsecond, however long the film."""
    done = Fraction(0)
    for duration in durations:
        begin, done = done, done + duration
        yield _decimals(Fraction(round(done * 10**6) - round(begin * 10**6), 10**6), 6)
