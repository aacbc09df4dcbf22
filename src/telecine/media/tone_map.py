"""High dynamic range as standard range: a table from coded RGB in PQ or HLG to coded RGB in BT.709.

Every chunk of a film uses the same table, because it depends on nothing but the plan: FFmpeg's own conversion clips at
SDR white by default, and in its other modes follows the metadata of whichever frame a chunk begins with.

    code ─▶ light in cd/m² ─▶ knee of BT.2390 on the largest channel ─▶ BT.709 primaries ─▶ clip ─▶ gamma 2.4

The largest channel alone decides, and all three are scaled alike, so hues stay. SDR white stands for 203 cd/m²
(BT.2408): what is darker than the knee keeps its light, what is brighter shares the rest up to the source's peak.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from itertools import product

PQ, HLG = 16, 18  # transfer code points
SIZE = 33  # grid points of the table on each axis
WHITE = 203.0  # cd/m²
USUAL_PEAK = 1000
MIN_PEAK, MAX_PEAK = 100, 10_000  # metadata outside of this is nonsense
_FULL = 0xFF00 / 0xFFFF  # white in FFmpeg's RGB of 16 bits: it shifts 255 up by 8, both ways
_GAMMA = 2.4  # of the screen (BT.1886)
_HLG_GAMMA, _HLG_PEAK = 1.2, 1000.0
_HLG_A, _HLG_B, _HLG_C = 0.17883277, 0.28466892, 0.55991073
_M1, _M2, _C1, _C2, _C3 = 2610 / 16384, 2523 / 32, 3424 / 4096, 2413 / 128, 2392 / 128

Matrix = tuple[tuple[float, ...], ...]
Bent = Callable[[float], float]
Gain = Callable[[float, float, float], float]
_D65 = (0.3127, 0.3290)
# Red, green, blue and white by code point of the primaries (ISO/IEC 23091-2).
_CHROMA = {
    1: ((0.640, 0.330), (0.300, 0.600), (0.150, 0.060), _D65),
    9: ((0.708, 0.292), (0.170, 0.797), (0.131, 0.046), _D65),
    12: ((0.680, 0.320), (0.265, 0.690), (0.150, 0.060), _D65),
}
_WIDE = 9  # any other primaries are taken for these


def peak_of(max_content: float | None, mastering_peak: float | None) -> int:
    """The brightest light of a source in cd/m²: what its metadata says, if that can be true."""
    said = (one for one in (max_content, mastering_peak) if one is not None and MIN_PEAK <= one <= MAX_PEAK)
    return round(next(said, USUAL_PEAK))


def cube(*, transfer: int, primaries: int, peak: int) -> str:
    """The table as a .cube file; red changes first."""
    lines = ("{:.6f} {:.6f} {:.6f}".format(*entry) for entry in _entries(transfer, primaries, peak))
    return "\n".join((f"LUT_3D_SIZE {SIZE}", *lines, ""))


def _entries(transfer: int, primaries: int, peak: int) -> Iterator[tuple[float, float, float]]:
    """Written out by hand, since it runs 35,937 times for each chunk."""
    known = primaries if primaries in _CHROMA else _WIDE
    (rr, rg, rb), (gr, gg, gb), (br, bg, bb) = _product(_inverse(_to_xyz(1)), _to_xyz(known))
    codes = [min(1.0, step / (SIZE - 1) / _FULL) for step in range(SIZE)]
    # HLG is relative: its brightest code is the peak of the screen that we reckon with, whatever metadata says.
    linear, gain = _to_light(transfer, known, codes, _knee(_HLG_PEAK if transfer == HLG else peak))
    power = 1 / _GAMMA
    for blue, green, red in product(linear, repeat=3):
        share = gain(red, green, blue) / WHITE
        yield (
            _FULL * min(1.0, max(0.0, share * (rr * red + rg * green + rb * blue))) ** power,
            _FULL * min(1.0, max(0.0, share * (gr * red + gg * green + gb * blue))) ** power,
            _FULL * min(1.0, max(0.0, share * (br * red + bg * green + bb * blue))) ** power,
        )


# --- from code to light ----------------------------------------------------------------------------------------------


def pq_light(code: float) -> float:
    """cd/m² of a PQ code between 0 and 1 (ST 2084)."""
    power = code ** (1 / _M2)
    return float(10_000 * (max(0.0, power - _C1) / (_C2 - _C3 * power)) ** (1 / _M1))


def pq_code(light: float) -> float:
    power = (light / 10_000) ** _M1
    return float(((_C1 + _C2 * power) / (1 + _C3 * power)) ** _M2)


def _to_light(transfer: int, primaries: int, codes: Sequence[float], bent: Bent) -> tuple[list[float], Gain]:
    """The linear value of each code, and what to multiply three of them by to get the light that is shown."""
    if transfer == PQ:
        lights = [pq_light(code) for code in codes]
        shares = {light: bent(light) / light if light else 0.0 for light in lights}
        return lights, lambda red, green, blue: shares[max(red, green, blue)]
    weights = _to_xyz(primaries)[1]

    def gain(red: float, green: float, blue: float) -> float:
        """From the scene to a screen of 1000 cd/m² (BT.2100's OOTF), then the knee."""
        luminance = weights[0] * red + weights[1] * green + weights[2] * blue
        if luminance <= 0:
            return 0.0
        screen: float = _HLG_PEAK * luminance ** (_HLG_GAMMA - 1)
        brightest = max(red, green, blue)
        return bent(screen * brightest) / brightest

    return [_hlg_scene(code) for code in codes], gain


def _hlg_scene(code: float) -> float:
    """Light of the scene between 0 and 1 (BT.2100)."""
    return code * code / 3 if code <= 0.5 else (math.exp((code - _HLG_C) / _HLG_A) + _HLG_B) / 12


# --- from much light to less -----------------------------------------------------------------------------------------


def _knee(peak: float) -> Bent:
    """BT.2390's curve without a lift of the blacks: a straight line up to the knee, then a Hermite spline to white.

    The knee is lower than BT.2390's own, which leaves nearly nothing between 600 and 1000 cd/m².
    """
    top = pq_code(max(peak, WHITE))
    white = pq_code(WHITE) / top
    start = max(0.0, 2 * white - 1)

    def bent(light: float) -> float:
        code = min(1.0, pq_code(light) / top)
        if code <= start:
            return light
        t = (code - start) / (1 - start) if start < 1 else 0.0
        spline = (
            (2 * t**3 - 3 * t**2 + 1) * start
            + (t**3 - 2 * t**2 + t) * (1 - start)
            + (-2 * t**3 + 3 * t**2) * white
        )  # fmt: skip
        return pq_light(spline * top)

    return bent


# --- from one triangle of colours to another -------------------------------------------------------------------------


def _to_xyz(primaries: int) -> Matrix:
    """From linear RGB to XYZ."""
    *corners, white = ((x / y, 1.0, (1 - x - y) / y) for x, y in _CHROMA[primaries])
    columns = tuple(zip(*corners, strict=True))
    scales = [sum(a * b for a, b in zip(row, white, strict=True)) for row in _inverse(columns)]
    return tuple(tuple(one * scale for one, scale in zip(row, scales, strict=True)) for row in columns)


def _product(left: Matrix, right: Matrix) -> Matrix:
    columns = tuple(zip(*right, strict=True))
    return tuple(tuple(sum(a * b for a, b in zip(row, col, strict=True)) for col in columns) for row in left)


def _inverse(matrix: Sequence[Sequence[float]]) -> Matrix:
    (a, b, c), (d, e, f), (g, h, i) = matrix
    cofactors = (
        (e * i - f * h, c * h - b * i, b * f - c * e),
        (f * g - d * i, a * i - c * g, c * d - a * f),
        (d * h - e * g, b * g - a * h, a * e - b * d),
    )
    whole = a * cofactors[0][0] + b * cofactors[1][0] + c * cofactors[2][0]
    return tuple(tuple(one / whole for one in row) for row in cofactors)
