"""Bounds of JSON that comes from outside: how deep it may be nested, and how many values it may hold.

`check_json` counts marks in the text, before anything is parsed: parsers take a hundred bytes and more for each value,
and follow nesting with their own stack. Brackets and commas in strings do not count.
"""

from __future__ import annotations

import re

from telecine.errors import BadSpec

MAX_DEPTH = 64
MAX_VALUES = 100_000
MAX_PIECES = 50_000  # of one plan
MAX_TASKS = 200_000  # of one job, planned ones included

# A whole string, or a mark outside of strings. Possessive, so that no escape is remembered for going back.
_TOKENS = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"?+|[\[\]{},]', re.DOTALL)
_STRING, _COMMA, _OPENING = b'",'[0], b'",'[1], frozenset(b"[{")


def check_json(text: bytes | str, what: str, *, max_values: int = MAX_VALUES, max_depth: int = MAX_DEPTH) -> None:
    """Refuse JSON that is nested too deeply or holds too many values; JSON that is broken otherwise passes."""
    data = text.encode(errors="replace") if isinstance(text, str) else text
    opened = data.count(b"[") + data.count(b"{")
    if opened <= max_depth and opened + data.count(b",") <= max_values:
        return  # it can be neither: the usual case
    depth = values = strings = 0
    for token in _TOKENS.finditer(data):
        first = data[token.start()]
        if first == _STRING:
            strings += 1  # a value, or the name of one
        elif first == _COMMA:
            values += 1
        else:
            is_opening = first in _OPENING
            depth += 1 if is_opening else -1
            values += is_opening
        if values > max_values or strings > 2 * max_values:
            raise BadSpec(f"{what} holds too many values: at most {max_values:,} are taken")
        if depth > max_depth:
            raise BadSpec(f"{what} is nested too deeply: at most {max_depth} levels are taken")
        if depth < 0:
            raise BadSpec(f"{what} is not JSON: it closes more brackets than it opens")
