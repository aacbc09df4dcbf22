"""Channels into channels: an explicit matrix for every layout, scaled so that nothing can clip. Pure."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

_HALF = math.sqrt(0.5)  # a channel that goes to both sides, or that stands behind: −3 dB

TARGETS: Mapping[int, tuple[str, tuple[str, ...]]] = {
    1: ("mono", ("FC",)),
    2: ("stereo", ("FL", "FR")),
    6: ("5.1", ("FL", "FR", "FC", "LFE", "BL", "BR")),
}
# Where a channel goes that the target does not have, and how loud. LFE is left out of stereo, as ITU-R BS.775 does.
_TO_STEREO: dict[str, dict[str, float]] = {
    "FL": {"FL": 1.0},
    "FR": {"FR": 1.0},
    "FC": {"FL": _HALF, "FR": _HALF},
    "LFE": {},
    "BC": {"FL": 0.5, "FR": 0.5},
    **{name: {"FL": _HALF} for name in ("BL", "SL", "TFL", "TBL", "WL", "SDL", "TSL")},
    **{name: {"FR": _HALF} for name in ("BR", "SR", "TFR", "TBR", "WR", "SDR", "TSR")},
}
_TO_SURROUND: dict[str, dict[str, float]] = {
    **{name: {name: 1.0} for name in TARGETS[6][1]},
    "SL": {"BL": 1.0},
    "SR": {"BR": 1.0},
    "BC": {"BL": _HALF, "BR": _HALF},
    "TFL": {"FL": _HALF},
    "TFR": {"FR": _HALF},
    "TBL": {"BL": _HALF},
    "TBR": {"BR": _HALF},
    "WL": {"FL": _HALF},
    "WR": {"FR": _HALF},
    "LFE2": {"LFE": 1.0},
}
_SAME = {"DL": "FL", "DR": "FR", "FLC": "FL", "FRC": "FR"}
_BY_COUNT: Mapping[int, Sequence[str]] = {
    1: ("FC",),
    2: ("FL", "FR"),
    3: ("FL", "FR", "FC"),
    4: ("FL", "FR", "BL", "BR"),
    5: ("FL", "FR", "FC", "BL", "BR"),
    6: TARGETS[6][1],
    8: (*TARGETS[6][1], "SL", "SR"),
}


def pan(channels: Sequence[str], wanted: int) -> str | None:
    """What FFmpeg's `pan` filter must do to make `wanted` channels of these; None: nothing."""
    layout, targets = TARGETS[wanted]
    if tuple(channels) == targets:
        return None
    rows = matrix(channels, wanted)
    terms = ["+".join(f"{gain:.6f}*c{i}" for i, gain in enumerate(row) if gain) or "0*c0" for row in rows]
    return "|".join([layout, *(f"{name}={term}" for name, term in zip(targets, terms, strict=True))])


def matrix(channels: Sequence[str], wanted: int) -> list[list[float]]:
    """One row per wanted channel. The loudest row sums to 1, so that full scale everywhere stays within full scale."""
    _, targets = TARGETS[wanted]
    gains = [_gains(name, wanted) for name in _named(channels)]
    rows = [[gain.get(target, 0.0) for gain in gains] for target in targets]
    loudest = max(sum(row) for row in rows) or 1.0
    return [[math.floor(gain / loudest * 1e6) / 1e6 for gain in row] for row in rows]


def _named(channels: Sequence[str]) -> Sequence[str]:
    names = [_SAME.get(name, name) for name in channels]
    if any(name in _TO_STEREO for name in names):
        return names
    return _BY_COUNT.get(len(names), ["FC"] * len(names))  # nobody said which is which


def _gains(name: str, wanted: int) -> Mapping[str, float]:
    if wanted == 6:
        return _TO_SURROUND.get(name, {})
    stereo = _TO_STEREO.get(name, {})
    return stereo if wanted == 2 else {"FC": sum(stereo.values())}
