"""Counts in sentences: `1 file`, `2 files`, `12,000 files`."""

from __future__ import annotations


def counted(number: int, noun: str, plural: str = "") -> str:
    """`number` with the right form of `noun`; `plural` where it is not `noun` with an s."""
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"
