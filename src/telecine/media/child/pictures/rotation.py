"""How a frame must be turned to stand upright: the display matrix, read in integers."""

from __future__ import annotations

import struct
from dataclasses import dataclass

from av.sidedata.sidedata import Type
from av.video.frame import VideoFrame

from telecine.media.child.source.side_data import of_kind

_MATRIX = struct.Struct("=9i")


@dataclass(frozen=True, slots=True)
class Rotation:
    """First swap left and right if `mirrored`, then turn by `rotation` degrees clockwise."""

    rotation: int = 0
    mirrored: bool = False
    exact: bool = True


def of_frame(frame: VideoFrame) -> Rotation:
    """FFmpeg hands the container's matrix on to each decoded frame; PyAV itself turns nothing."""
    matrix = of_kind(frame, Type.DISPLAYMATRIX)
    return Rotation() if matrix is None else of_matrix(_MATRIX.unpack(matrix[: _MATRIX.size]))


def of_matrix(matrix: tuple[int, ...]) -> Rotation:
    """`matrix` is (a, b, u, c, d, v, x, y, w): the point (x, y) is shown at (a·x + c·y, b·x + d·y), y downwards."""
    a, b, _, c, d = matrix[:5]
    mirrored = a * d - b * c < 0
    if mirrored:
        a, b = -a, -b
    exact = not (a and b)
    if abs(a) >= abs(b):
        return Rotation(180 if a < 0 else 0, mirrored, exact)
    return Rotation(270 if b < 0 else 90, mirrored, exact)
