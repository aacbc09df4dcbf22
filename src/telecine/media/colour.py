"""Colour: what a source's code points mean, and which ones its renditions get (ISO/IEC 23091-2)."""

from __future__ import annotations

from telecine.media.source import Picture

Colour = tuple[int, int, int]  # primaries, transfer, matrix

BT709: Colour = (1, 1, 1)
BT601: Colour = (6, 6, 6)
UNSPECIFIED = 2
_HD_LINES = 720
# What a browser shows as it is meant; anything else is converted.
_SHOWN = {1, 5, 6}


def of_source(picture: Picture) -> Colour:
    """The source's own tags; what it leaves open is guessed from its size, as players do."""
    guess = BT709 if min(picture.width, picture.height) >= _HD_LINES else BT601
    said = (picture.primaries, picture.transfer, picture.matrix)
    known = tuple(own if own not in (0, UNSPECIFIED) else usual for own, usual in zip(said, guess, strict=True))
    return (known[0], known[1], known[2])


def of_renditions(picture: Picture) -> Colour:
    """Standard colour stays as it is; high dynamic range, wide gamut and RGB become BT.709."""
    colour = of_source(picture)
    return colour if _SHOWN.issuperset(colour) else BT709
