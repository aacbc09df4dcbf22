"""Side data of decoded frames: what FFmpeg attaches to a picture besides its pixels."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from typing import Any

from av.sidedata.sidedata import Type
from av.video.frame import VideoFrame

from telecine.media.tone_map import peak_of

VIEW_ID = 29  # AV_FRAME_DATA_VIEW_ID: which view of multi-view HEVC (spatial video) a frame shows
_MASTERING: Any = Type.MASTERING_DISPLAY_METADATA
_CONTENT: Any = Type.CONTENT_LIGHT_LEVEL
LCEVC = 28  # AV_FRAME_DATA_LCEVC: an enhancement layer that we do not apply

_LIGHT = struct.Struct("=II")  # AVContentLightMetadata: MaxCLL, MaxFALL
_SCREEN = struct.Struct("=72x2i2i")  # AVMasteringDisplayMetadata: its largest luminance, and whether it has any


def _unnamed(kind: Any, value: object) -> Any:
    """FFmpeg has more kinds than PyAV has names: without this, one unnamed kind makes all of a frame unreadable."""
    member = object.__new__(kind)
    member._name_, member._value_ = f"KIND_{value}", value
    return member


Type._missing_ = classmethod(_unnamed)  # type: ignore[assignment, method-assign]


def side_data(frame: VideoFrame) -> dict[int, bytes]:
    """What a frame carries, by FFmpeg's number of its kind; the last of each kind."""
    carried: Any = frame.side_data
    return {int(one.type.value): bytes(one) for one in carried}


def of_kind(frame: VideoFrame, kind: Any) -> bytes | None:
    """`kind` is one of PyAV's `Type`."""
    return side_data(frame).get(kind.value)


def hdr_peak(frames: Sequence[VideoFrame]) -> int:
    """cd/m² of the brightest light, by the metadata of the first frame that has any."""
    found = (_said_peaks(side_data(frame)) for frame in frames)
    return peak_of(*next((one for one in found if any(one)), (None, None)))


def _said_peaks(carried: Mapping[int, bytes]) -> tuple[float | None, float | None]:
    """Of the content, and of the screen that it was graded on."""
    light, mastering = carried.get(_CONTENT.value), carried.get(_MASTERING.value)
    content = screen = None
    if light is not None and len(light) >= _LIGHT.size:
        content = float(_LIGHT.unpack_from(light)[0])
    if mastering is not None and len(mastering) >= _SCREEN.size:
        numerator, denominator, _, has_luminance = _SCREEN.unpack_from(mastering)
        screen = numerator / denominator if has_luminance and denominator else None
    return content, screen
