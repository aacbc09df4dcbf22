"""Do a stream's frames come out of the decoder in the order of their times?

They do not where B-frames were muxed without composition offsets: then times ascend in the order of decoding, and
only a decoder knows in which order the frames are shown.
"""

from __future__ import annotations

from itertools import islice, pairwise
from typing import Any

from telecine.media.child.protocol import ChildSession
from telecine.media.child.source import open_source
from telecine.media.child.source.head import first_frames

REORDERED = frozenset({"h264", "hevc", "vvc"})  # of older codecs, FFmpeg's parsers know the order
_FRAMES = 120  # B-frames come early, or hardly at all


def is_suspicious(stream: Any, *, ascends: bool) -> bool:
    """Times that only rise, in a stream whose decoder holds frames back to reorder them."""
    return ascends and open_source.codec_name(stream) in REORDERED and bool(stream.codec_context.has_b_frames)


def is_shown_in_order(talk: ChildSession, format: str, index: int) -> bool:
    """Decodes the first frames of this stream to see."""
    times = [frame.pts for frame in islice(first_frames(talk, format, index), _FRAMES) if frame.pts is not None]
    return all(before < after for before, after in pairwise(times))
