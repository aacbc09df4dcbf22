"""Read the head of a file and say what it is, or refuse it with one sentence."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import islice
from typing import Any

import av
import av.error
import av.logging
from av.container import InputContainer
from av.stream import Disposition, Stream
from av.video.frame import VideoFrame

from telecine.media.child.ffmpeg_log import FfmpegLog
from telecine.media.child.pictures import rotation
from telecine.media.child.protocol import ChildSession, OrderRefused
from telecine.media.child.source import dolby_vision, open_source
from telecine.media.child.source.encryption import refusal, refuse_locked_bytes, refuse_locked_streams
from telecine.media.child.source.file_kinds import kind_of
from telecine.media.child.source.remux import copyable
from telecine.media.child.source.side_data import LCEVC, VIEW_ID, hdr_peak, side_data
from telecine.media.limits import FASTEST
from telecine.media.orders import Probe
from telecine.media.plain_json import to_plain
from telecine.media.source import Picture, Sound, Source

_HEAD = 256 << 10  # bytes
_FRAMES = 3  # the first may be a field short, or without colours
_PACKETS = 1000  # of a stream, before we give up on a first frame
_NOT_FILM = Disposition.attached_pic | Disposition.timed_thumbnails | Disposition.still_image
_PICTURE_CODECS = frozenset({"mjpeg", "png", "bmp", "webp", "gif", "tiff"})
_UNSPECIFIED = 2


def run(order: Probe, talk: ChildSession) -> Mapping[str, Any]:
    """A `Source`, plain."""
    found: Mapping[str, Any] = to_plain(_probed(talk, thorough=order.thorough))
    return found


def _probed(talk: ChildSession, *, thorough: bool = False) -> Source:
    talk.source.seek(0)
    head = _read(talk, _HEAD)
    refuse_locked_bytes(head, talk.source)
    dolby_vision.refuse_record(head, talk.source)
    with _opened(talk, head, thorough=thorough) as container:
        refuse_locked_streams(list(container.streams))
        picture, warnings = _picture(container, talk)
        sounds = tuple(_sounds(container, warnings))
        damage = () if picture is not None else tuple(_broken_promises(container))
        if damage and not sounds:
            raise OrderRefused("damaged", f"{damage[0]}: repair the file", permanent=True)
        if picture is None and not sounds:
            raise OrderRefused(
                "no_streams", "the file holds neither video nor audio that can be decoded", permanent=True
            )
        name = container.format.name.split(",")[0]
        # Sound alone is read from its beginning, always; only a clock that may jump has to be put right first.
        seekable = name in open_source.SEEKABLE or (picture is None and name not in open_source.JUMPING)
        if picture is not None and not seekable and not _is_copyable(container, picture):
            warnings.append(f"{picture.codec} cannot be copied: the file is read as it is, which takes longer")
            seekable = True
        return Source(
            format=name,
            size=talk.size,
            duration=_duration(container, name),
            picture=picture,
            sounds=sounds,
            streams=len(container.streams),
            seekable=seekable,
            unclear=any(_is_unclear(stream) for stream in container.streams.audio),
            thorough=thorough,
            warnings=tuple(warnings),
            damage=damage,
        )


def _duration(container: InputContainer, name: str) -> Fraction | None:
    """As the container claims it. Matroska says when the film ends, also on a clock that does not begin at zero.

    None where the clock may jump: first and last time say nothing then, and only all packets tell how long it is.
    """
    if container.duration is None or name in open_source.JUMPING:
        return None
    start = container.start_time or 0 if name == "matroska" else 0
    return Fraction(max(container.duration - max(start, 0), 0), av.time_base)


def _is_copyable(container: InputContainer, picture: Picture) -> bool:
    """If not, the source is not remuxed. Frames are checked one by one anyway: that only takes longer."""
    return open_source.decoder_name(container.streams[picture.stream]) in copyable()


def _read(talk: ChildSession, length: int) -> bytes:
    parts: list[bytes] = []
    while length and (part := talk.source.read(length)):
        parts.append(part)
        length -= len(part)
    return b"".join(parts)


def _opened(talk: ChildSession, head: bytes, *, thorough: bool) -> InputContainer:
    with FfmpegLog(av.logging.ERROR) as complaints:
        try:
            return open_source.open_source(talk, None, thorough=thorough)
        except (av.error.FFmpegError, ValueError) as error:
            if isinstance(error, (av.error.MemoryError, av.error.OSError)) and not isinstance(error, ValueError):
                raise
            raise _unreadable(head, complaints.lines) from error


def _unreadable(head: bytes, said: Sequence[str]) -> OrderRefused:
    kind = kind_of(head)
    if kind is None:
        return OrderRefused("not_media", "this is not a video or audio file that can be read", permanent=True)
    why = f" ({said[0]})" if said else ""
    return OrderRefused(
        "damaged", f"the file looks like {kind}, but its head is damaged or missing{why}", permanent=True
    )


# --- pictures --------------------------------------------------------------------------------------------------------


def _picture(container: InputContainer, talk: ChildSession) -> tuple[Picture | None, list[str]]:
    """The best stream that really gives frames. A film whose pictures cannot be decoded is not taken for sound."""
    warnings: list[str] = []
    fault: OrderRefused | None = None
    for nth, stream in enumerate(_candidates(container)):
        if not open_source.decoder_is_allowed(stream):
            message = f"its video stream {stream.index} is {open_source.codec_name(stream)}, which is not decoded"
            fault = fault or OrderRefused("unsupported", message, permanent=True)
            continue
        # Seeking to the start may skip the first frames of a transport stream, or fail: each stream is read anew.
        again = open_source.open_source(talk, container.format.name) if nth else container
        mine = open_source.stream_of(again, stream.index)
        seen = _FirstFrames(again, mine)
        if seen.frames:
            return _described(mine, seen.frames, warnings), warnings
        if seen.packets:
            message = f"no frame of its video stream {stream.index} can be decoded"
            fault = fault or OrderRefused("damaged", message, permanent=True)
        elif not _is_promised(stream):
            warnings.append(f"video stream {stream.index} is empty")
    if fault is not None:
        raise fault
    return None, warnings


def _broken_promises(container: InputContainer) -> Iterator[str]:
    """Video streams that the container describes at length, and of which not one packet can be found."""
    for stream in _candidates(container):
        if _is_promised(stream):
            what = f"{stream.frames} frames" if stream.frames else f"{float(stream.duration * stream.time_base):.1f} s"
            yield f"its video stream {stream.index} promises {what}, and none of it can be read"


def _is_promised(stream: Any) -> bool:
    return bool(stream.frames or stream.duration)


def _candidates(container: InputContainer) -> list[Any]:
    """Streams that may be the film, the largest first."""
    film: list[Any] = [one for one in container.streams.video if not one.disposition & _NOT_FILM and not _is_cover(one)]
    return sorted(film, key=lambda one: (-_pixels(one), not one.disposition & Disposition.default, one.index))


def _pixels(stream: Any) -> int:
    return 0 if open_source.decoder_name(stream) is None else int(stream.width * stream.height)


def _is_cover(stream: Stream) -> bool:
    """A picture that nobody has marked as one: a single JPEG or PNG."""
    return stream.frames == 1 and open_source.codec_name(stream) in _PICTURE_CODECS


class _FirstFrames:
    """The first frames of a stream, and from how many packets they came."""

    def __init__(self, container: InputContainer, stream: Any) -> None:
        self.packets = 0
        open_source.prepare(stream)
        try:
            self.frames = list(islice(self._decoded(container, stream), _FRAMES))
        except av.error.FFmpegError as error:
            if not open_source.is_damage(error):
                raise
            self.frames = []

    def _decoded(self, container: InputContainer, stream: Any) -> Iterator[VideoFrame]:
        for packet in islice(open_source.demuxed(container, stream), _PACKETS):
            self.packets += bool(packet.size)
            if packet.has_sidedata("encryption_info"):
                raise refusal()
            try:
                yield from packet.decode()
            except av.error.FFmpegError as error:
                if not open_source.is_damage(error):
                    raise  # else a stream may begin in the middle of something: the next keyframe mends it


def _described(stream: Any, frames: Sequence[VideoFrame], warnings: list[str]) -> Picture:
    frame = frames[0]
    dolby_vision.refuse_frame(frame)
    warnings.extend(left_out(side_data(frame)))
    turn = rotation.of_frame(frame)
    if not turn.exact:
        warnings.append("the display matrix turns by less than a quarter: rounded")
    context = stream.codec_context
    picture = Picture(
        stream=stream.index,
        codec=open_source.codec_name(stream),
        width=frame.width,
        height=frame.height,
        time_base=stream.time_base,
        sar=_sar(stream),
        rotation=turn.rotation,
        mirrored=turn.mirrored,
        pixels=frame.format.name,
        depth=max(one.bits for one in frame.format.components),
        rate=_rate(stream),
        primaries=_code(frame.color_primaries, context.color_primaries),
        transfer=_code(frame.color_trc, context.color_trc),
        matrix=_code(frame.colorspace, context.colorspace),
        full_range=2 in (frame.color_range, context.color_range) or frame.format.name.startswith("yuvj"),
        interlaced=any(one.interlaced_frame for one in frames),
    )
    return replace(picture, peak=hdr_peak(frames)) if picture.is_hdr else picture


def left_out(carried: Mapping[int, bytes]) -> Iterator[str]:
    """What a picture has besides the layer that is decoded, by its side data."""
    if VIEW_ID in carried:
        yield "the video is spatial (MV-HEVC): only its base view is used, which is the picture of one eye"
    if LCEVC in carried:
        yield "the video has an LCEVC enhancement, which is not applied: its base layer is used"


def _rate(stream: Any) -> Fraction | None:
    """As the container says it. Where it says nothing FFmpeg takes the ticks of its clock for frames: 1000 a second."""
    rate: Fraction | None = stream.guessed_rate or stream.average_rate
    return rate if rate is not None and rate <= FASTEST else None


def _sar(stream: Any) -> Fraction:
    sar: Fraction | None = stream.sample_aspect_ratio
    return sar if sar is not None and sar > 0 else Fraction(1)


def _code(of_frame: int, of_stream: int) -> int:
    return int(of_frame) if of_frame not in (0, _UNSPECIFIED) else int(of_stream) or _UNSPECIFIED


# --- sound -----------------------------------------------------------------------------------------------------------


def _sounds(container: InputContainer, warnings: list[str]) -> Iterator[Sound]:
    for stream in container.streams.audio:
        if not open_source.decoder_is_allowed(stream):
            warnings.append(f"audio stream {stream.index} is left out: {open_source.codec_name(stream)} is not decoded")
        elif _is_unclear(stream):
            codec = open_source.codec_name(stream)
            warnings.append(f"audio stream {stream.index} ({codec}) is left out: nothing of it was found")
        else:
            yield _sound(stream)


def _is_unclear(stream: Any) -> bool:
    """Whether the container announces a track that can be decoded, and what was read holds nothing of it."""
    context = stream.codec_context
    return open_source.decoder_is_allowed(stream) and not (context.sample_rate and context.channels)


def _sound(stream: Any) -> Sound:
    context = stream.codec_context
    language = stream.metadata.get("language")
    return Sound(
        stream=stream.index,
        codec=open_source.codec_name(stream),
        rate=context.sample_rate,
        channels=context.channels,
        time_base=stream.time_base,
        layout=context.layout.name,
        language=None if language in (None, "", "und") else language,
        title=stream.metadata.get("title"),
        default=bool(stream.disposition & Disposition.default),
    )
