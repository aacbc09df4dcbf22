"""The first frames of a stream, as the decoder gives them; and where a film can begin.

Recordings of a running broadcast start inside a group of pictures. Frames before the first keyframe refer to pictures
that are not in the file, and so may frames that are decoded after it and shown before it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any

import av.error
from av.video.frame import VideoFrame

from telecine.media.child.protocol import ChildSession
from telecine.media.child.source import open_source

_AFTER = 16  # frames behind the keyframe: decoders hold back no more


def first_frames(talk: ChildSession, format: str, index: int) -> Iterator[VideoFrame]:
    """All that can be decoded, from the beginning on. The caller stops when it has seen enough."""
    with open_source.open_source(talk, format) as container:
        stream: Any = open_source.stream_of(container, index)
        open_source.prepare(stream)
        try:
            for packet in open_source.demuxed(container, stream):
                yield from _decoded(packet)
                talk.alive()
        except av.error.FFmpegError as error:
            if not open_source.is_damage(error):
                raise


def undecodable_head(frames: Iterator[VideoFrame], early: Sequence[int], key: int, *, is_cut: bool) -> set[int]:
    """Which of these times, all before the first keyframe's, belong to frames that cannot be decoded.

    `is_cut`: the file begins before its first keyframe. Then nothing counts before a frame that the decoder itself
    calls a keyframe: some containers do not mark each of them.
    """
    wanted, found = set(early), set[int]()
    is_open = not is_cut
    left = _AFTER
    for frame in islice(frames, 2 * (len(early) + _AFTER)):  # frames without a time may be among them
        is_open = is_open or (frame.key_frame and not frame.is_corrupt)
        if is_open and not frame.is_corrupt and frame.pts in wanted:
            found.add(frame.pts)  # and not the frame: a group of pictures may take a gigabyte
        left -= frame.pts is not None and frame.pts >= key
        if left <= 0:
            break
    return wanted - found


def _decoded(packet: Any) -> list[VideoFrame]:
    try:
        frames: list[VideoFrame] = packet.decode()
    except av.error.FFmpegError as error:
        if not open_source.is_damage(error):
            raise
        return []
    return frames
