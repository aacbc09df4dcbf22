"""Colour: what a source's code points mean, and which ones its renditions get (ISO/IEC 23091-2)."""

from __future__ import annotations

from telecine.media.source import Picture

Colour = tuple[int, int, int]  # primaries, transfer, matrix

BT709: Colour = (1, 1, 1)
BT601: Colour = (6, 6, 6)
_HD_LINES = 720
# Code points that mean something. 0 is RGB or reserved, 2 is "unspecified", 3 is reserved.
_KNOWN = ({1, *range(4, 13), 22}, {1, *range(4, 19)}, {1, *range(4, 15)})
# What a browser shows as it is meant; anything else is converted.
_SHOWN = ({1, 5, 6}, {1, 4, 5, 6, 13, 14, 15}, {1, 5, 6})


def of_source(picture: Picture) -> Colour:
    """The source's own tags; what it leaves open is guessed from its size, as players do."""
    guess = BT709 if min(picture.width, picture.height) >= _HD_LINES else BT601
    said = (picture.primaries, picture.transfer, picture.matrix)
    primaries, transfer, matrix = (
        own if own in known else usual for own, usual, known in zip(said, guess, _KNOWN, strict=True)
    )
    return primaries, transfer, matrix


def of_renditions(picture: Picture) -> Colour:
    """Standard colour stays as it is; high dynamic range, wide gamut and RGB become BT.709."""
    colour = of_source(picture)
    return colour if all(own in shown for own, shown in zip(colour, _SHOWN, strict=True)) else BT709
