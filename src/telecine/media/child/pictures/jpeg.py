"""Frames as JPEG: BT.601 in full range, as every viewer of a JPEG assumes."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from av.codec.context import CodecContext
from av.video.frame import VideoFrame
from av.video.reformatter import ColorRange, Colorspace, Interpolation

PIXELS = "yuvj420p"
_QUALITY = {85: 3, 75: 5}  # FFmpeg's scale, 2 (best) to 31, nearest to libjpeg's
_LAMBDA = 118
_BITEXACT, _FIXED_QUALITY = 1 << 23, 1 << 1
_FULL = 2
_HD = 720
_MATRICES = {
    1: Colorspace.ITU709,
    4: Colorspace.FCC,
    5: Colorspace.ITU601,
    6: Colorspace.SMPTE170M,
    7: Colorspace.SMPTE240M,
    9: Colorspace.BT2020,
}


def scaled(frame: VideoFrame, width: int, height: int) -> VideoFrame:
    """The frame at this size, in the colours of a JPEG."""
    unsaid = Colorspace.ITU709 if frame.height >= _HD else Colorspace.ITU601
    full = frame.color_range == _FULL or frame.format.name.startswith("yuvj")
    return frame.reformat(
        width=width,
        height=height,
        format=PIXELS,
        src_colorspace=_MATRICES.get(frame.colorspace, unsaid),
        dst_colorspace=Colorspace.ITU601,
        src_color_range=ColorRange.JPEG if full else ColorRange.MPEG,
        dst_color_range=ColorRange.JPEG,
        interpolation=int(Interpolation.AREA if width * 2 <= frame.width else Interpolation.BICUBIC),
        threads=1,
    )


def encoded(frame: VideoFrame, quality: int) -> bytes:
    """A JPEG of a frame that `scaled` made; equal frames give equal bytes."""
    context: Any = CodecContext.create("mjpeg", "w")
    context.width, context.height, context.pix_fmt = frame.width, frame.height, PIXELS
    context.color_range = _FULL
    context.time_base = Fraction(1, 25)
    context.flags |= _BITEXACT | _FIXED_QUALITY
    context.global_quality = _QUALITY[quality] * _LAMBDA
    context.thread_count = 1
    frame.pts, frame.time_base, frame.pict_type = 0, Fraction(1, 25), 0
    return b"".join(bytes(packet) for packet in [*context.encode(frame), *context.encode(None)])


def even(side: float) -> int:
    """The nearest even number of pixels, and never none."""
    return max(2, 2 * round(side / 2))
