"""Ranges and conditions of requests for bytes, as RFC 9110 defines them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

# More digits than any file has bytes: beyond the end, not malformed.
_SPEC: Final = re.compile(r"(?:([0-9]{1,999})-([0-9]{0,999})|-([0-9]{1,999}))")
MAX_SPECS: Final = 100


class UnsatisfiableRange(Exception):
    """The header is well formed, and no byte of the file is in it: 416."""


def range_in(text: str | None, size: int) -> tuple[int, int] | None:
    """First and last byte; None: the whole. A malformed header, an unknown unit and several ranges mean the whole."""
    unit, _, wanted = (text or "").partition("=")
    if unit.strip().lower() != "bytes":
        return None
    specs = [spec for part in wanted.split(",") if (spec := part.strip(" \t"))]
    found = [_SPEC.fullmatch(spec) for spec in specs[:MAX_SPECS]]
    if not found or len(specs) > MAX_SPECS or not all(found):
        return None
    spans = [_span(match, size) for match in found if match is not None]
    if any(first > last for first, last, _ in spans):
        return None  # such as 5-2, which makes the whole header invalid
    possible = [(first, min(last, size - 1)) for first, last, is_possible in spans if is_possible]
    if not possible:
        raise UnsatisfiableRange
    return possible[0] if len(spans) == 1 else None


def _span(match: re.Match[str], size: int) -> tuple[int, int, bool]:
    first, last, suffix = match.groups()
    if suffix is not None:
        length = min(int(suffix), size)
        return max(0, size - length), max(0, size - 1, size - length), length > 0
    begin = int(first)
    return begin, int(last) if last else max(begin, size - 1), begin < size


def is_known(headers: Mapping[str, str], etag: str) -> bool:
    """Whether the client has it already: If-None-Match, compared weakly."""
    tags = [tag.strip().removeprefix("W/") for tag in headers.get("if-none-match", "").split(",")]
    return etag in tags or tags == ["*"]


def is_other(headers: Mapping[str, str], etag: str) -> bool:
    """Whether If-Match, compared strongly, asks for another version: 412."""
    tags = [tag.strip() for tag in headers.get("if-match", "*").split(",")]
    return etag not in tags and tags != ["*"]
