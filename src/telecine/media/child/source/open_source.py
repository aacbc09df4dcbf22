"""How a source is opened, for every operation: only these demuxers, only these decoders, and nothing beside the file.

A demuxer that opens further files (playlists, DASH, concat) is a way out of the sandbox, and rare decoders are where
the memory faults are: both lists name what is allowed. `protocol_whitelist` alone does not stop DASH.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NoReturn

import av
import av.error
from av.codec.context import CodecContext, ThreadType
from av.container import InputContainer
from av.packet import Packet
from av.stream import Stream

from telecine.media.child.protocol import ChildSession, OrderRefused
from telecine.media.child.source.reader import FileSource, SourceReader


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split(","))


DEMUXERS = _names(
    "mov,mp4,m4a,3gp,3g2,mj2,matroska,webm,mpegts,mpeg,avi,flv,asf,ogg,mxf,gxf,nut,ivf,obu,dv,rm,wtv,yuv4mpegpipe,"
    "h264,hevc,vvc,av1,m4v,mpegvideo,vc1,wav,w64,aiff,caf,au,mp3,flac,aac,ac3,eac3,dts,truehd,amr,ape,wv,tta"
)
SEEKABLE = frozenset({"mov", "matroska"})  # elsewhere seeking by PTS was measured to give wrong frames
JUMPING = frozenset({"mpegts", "mpeg", "flv"})  # recordings of what runs anyway, on its clock
PICTURE_DECODERS = _names(
    "h264,hevc,vvc,mpeg1video,mpeg2video,mpeg4,msmpeg4,msmpeg4v1,msmpeg4v2,h263,h263i,h263p,flv,vp6,vp6a,vp6f,vp7,vp8,"
    "vp9,libvpx,libvpx-vp9,av1,libdav1d,vc1,wmv1,wmv2,wmv3,theora,mjpeg,prores,dnxhd,dvvideo,rawvideo,ffv1,huffyuv,"
    "ffvhuff,utvideo,cfhd,svq1,svq3,cinepak,rv10,rv20,rv30,rv40,qtrle"
)
SOUND_DECODERS = _names(
    "aac,aac_latm,ac3,eac3,mp1,mp1float,mp2,mp2float,mp3,mp3float,opus,libopus,vorbis,flac,alac,dca,truehd,mlp,wmav1,"
    "wmav2,wmapro,wmalossless,amrnb,amrwb,ape,wavpack,tta,adpcm_ms,adpcm_ima_wav,adpcm_ima_qt,adpcm_swf,gsm,speex,"
    "nellymoser,cook,pcm_alaw,pcm_bluray,pcm_dvd,pcm_f32be,pcm_f32le,pcm_f64be,pcm_f64le,pcm_mulaw,pcm_s16be,pcm_s16le,"
    "pcm_s16be_planar,pcm_s16le_planar,pcm_s24be,pcm_s24le,pcm_s32be,pcm_s32le,pcm_s8,pcm_u16be,pcm_u16le,pcm_u8"
)
DECODERS = PICTURE_DECODERS | SOUND_DECODERS

_OPTIONS: Mapping[str, str] = {
    "format_whitelist": ",".join(sorted(DEMUXERS)),
    "codec_whitelist": ",".join(sorted(DECODERS)),
    "protocol_whitelist": "none",
    "probesize": str(8 << 20),
    "analyzeduration": "8000000",  # µs; sound that begins later than this is not found
}
_ALL_MICROSECONDS = 10**13


def open_source(talk: ChildSession, format: str | None, *, thorough: bool = False, **options: str) -> InputContainer:
    """The source of this order, opened by the demuxer of `Source.format`; None: find out which.

    `thorough`: all of it is read first, so that tracks are known which begin in the middle of the file.
    """
    if not thorough:
        return _known(talk, format, options)
    with talk.source.watched(talk.progress):  # hours of film are read before the first packet comes
        container = _known(talk, format, {**options, **_whole(talk, options)})
    rewind(container)
    return container


def _whole(talk: ChildSession, options: Mapping[str, str]) -> dict[str, str]:
    """Without `nobuffer` the demuxer would keep every packet in memory that it has seen."""
    flags = f"{options.get('fflags', '')}+nobuffer"
    return {"probesize": str(talk.size + 1), "analyzeduration": str(_ALL_MICROSECONDS), "fflags": flags}


def rewind(container: InputContainer) -> None:
    """Back to the first byte: a seek by time may skip the first frames. Decoders forget what they hold."""
    container.seek(0, unsupported_byte_offset=True)
    for stream in container.streams:
        context: CodecContext | None = stream.codec_context
        if context is not None and context.is_open:
            context.flush_buffers()


def _known(talk: ChildSession, format: str | None, options: Mapping[str, str]) -> InputContainer:
    name = None if format is None else format.split(",", maxsplit=1)[0]
    if name is not None and name not in DEMUXERS:
        raise OrderRefused("not_media", f"files of the kind {name!r} are not read", permanent=True)
    talk.source.seek(0)
    try:
        return _opened(talk.source, name, options)
    except av.error.InvalidDataError as error:
        if name is None:
            raise
        raise OrderRefused(
            "damaged", f"the file cannot be opened as {name}: its head is damaged", permanent=True
        ) from error


@contextmanager
def open_made(path: Path) -> Iterator[InputContainer]:
    """An MP4 file in the scratch folder, that we made ourselves."""
    handle = os.open(path, os.O_RDONLY)
    try:
        with _opened(SourceReader(FileSource(handle)), "mov", {}) as container:
            yield container
    finally:
        os.close(handle)


def _opened(reader: SourceReader, format: str | None, options: Mapping[str, str]) -> InputContainer:
    container: InputContainer = av.open(
        reader,
        "r",
        format=format,
        container_options={**_OPTIONS, **options},
        metadata_errors="replace",
        io_open=_nothing_else,
    )
    return container


def decoder_is_allowed(stream: Stream) -> bool:
    """PyAV opens its decoders apart from the container: the list must be kept here as well."""
    return decoder_name(stream) in DECODERS


def prepare(stream: Stream, threads: int = 1) -> None:
    """Let this stream be decoded, with so many threads."""
    if not decoder_is_allowed(stream):
        raise OrderRefused("unsupported", f"{codec_name(stream)} is not decoded", permanent=True)
    if not stream.codec_context.is_open:  # else an earlier pass over the file has opened it
        stream.codec_context.thread_count = threads
        stream.codec_context.thread_type = ThreadType.NONE if threads == 1 else ThreadType.AUTO


def decoder_name(stream: Stream) -> str | None:
    """FFmpeg's decoder for this stream: "h264", "mp3float", "libdav1d"; None: it has none."""
    context: CodecContext | None = stream.codec_context  # PyAV's own types say that there always is one
    return None if context is None else context.codec.name


def codec_name(stream: Stream) -> str:
    """The codec, not the decoder: "h264", "mp3", "av1"."""
    return "an unknown codec" if decoder_name(stream) is None else stream.codec_context.codec.canonical_name


def extradata(stream: Stream) -> bytes:
    """The stream's parameter sets, as its container has them."""
    return bytes(stream.codec_context.extradata or b"")


def demuxed(container: InputContainer, *streams: Any, late: list[bool] | None = None) -> Iterator[Packet[Any]]:
    """Packets of these streams. Another one that turns up in mid-film is left out, and noted in `late`."""
    try:
        yield from container.demux(*streams)
    except IndexError:  # PyAV stumbles over it at the end
        if late is not None:
            late.append(True)


def is_damage(error: av.error.FFmpegError) -> bool:
    """Is it the file's fault? Decoders and demuxers give damage all kinds of numbers; only memory is not its fault."""
    return not isinstance(error, av.error.MemoryError)


def stream_of(container: InputContainer, index: int) -> Stream:
    """The stream that a probe has chosen; the file may not have changed since."""
    if index >= len(container.streams):
        raise OrderRefused("source_changed", f"the source has no stream {index} any more", permanent=True)
    return container.streams[index]


def _nothing_else(url: str, flags: int, options: Mapping[str, str]) -> NoReturn:
    raise OrderRefused("unsupported", "the file refers to other files, and these are not opened", permanent=True)
