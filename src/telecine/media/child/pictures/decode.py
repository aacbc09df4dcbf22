"""Decode what was made, and believe nothing else: an exit without an error proves nothing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import av.error
import av.logging
from av.container import InputContainer

from telecine.media.child.error_report import reason
from telecine.media.child.ffmpeg_log import FfmpegLog
from telecine.media.child.protocol import ChildSession, OrderRefused
from telecine.media.child.source import open_source
from telecine.media.orders import Decode


def run(order: Decode, talk: ChildSession) -> Mapping[str, Any]:
    """How many files and frames were found right. The first that is wrong ends it, with its name."""
    done = 0
    for name, frames in zip(order.files, order.frames, strict=True):
        fault = _fault(name, frames, order, talk)
        if fault:
            raise OrderRefused("decode_failed", f"{name}: {fault}")
        done += frames
        talk.progress(done)
    return {"files": len(order.files), "frames": done}


def _fault(name: str, frames: int, order: Decode, talk: ChildSession) -> str | None:
    """What is wrong with this file."""
    with FfmpegLog(av.logging.WARNING) as complaints:
        try:
            with open_source.open_made(talk.scratch / name) as container:
                found = _decoded(container, order.limits.threads)
        except av.error.FFmpegError as error:
            return f"it cannot be decoded: {reason(error)}"
        if complaints.count:
            return f"the decoder complains: {'; '.join(complaints.lines[:3])}"
    if found.fault:
        return found.fault
    return None if found.frames == frames else f"it has {found.frames} frames instead of {frames}"


class _Found:
    """What came out of a file, checked frame by frame."""

    def __init__(self) -> None:
        self.packets = 0
        self.pictures = 0
        self.is_picture = True
        self.fault: str | None = None
        self._last: int | None = None
        self._step: int | None = None

    @property
    def frames(self) -> int:
        """Of sound, what is coded: the first frame is priming, and an edit list hides it."""
        return self.pictures if self.is_picture else self.packets

    def see(self, packet: Any) -> None:
        if not self.packets and not packet.is_keyframe:
            self._wrong("it does not begin with a keyframe")
        self.packets += 1

    def take(self, frame: Any) -> None:
        self.pictures += 1
        if frame.is_corrupt:
            self._wrong(f"the frame at {frame.pts} is corrupt")
        if frame.pts is None:
            self._wrong("a frame has no time")
        elif self._last is not None:
            step = frame.pts - self._last
            self._step = self._step or step
            if step != self._step or step <= 0:
                self._wrong(f"after {self._last} comes {frame.pts}: a step of {step} instead of {self._step}")
        self._last = frame.pts

    def _wrong(self, fault: str) -> None:
        self.fault = self.fault or fault


def _decoded(container: InputContainer, threads: int) -> _Found:
    """Its only stream, whole."""
    found = _Found()
    stream: Any = container.streams[0]
    open_source.prepare(stream, threads)
    found.is_picture = stream.type == "video"
    for packet in container.demux(stream):
        if packet.size:
            found.see(packet)
        for frame in packet.decode():
            found.take(frame)
    return found
