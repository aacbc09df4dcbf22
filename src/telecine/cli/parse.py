"""What people type: specs, moments, subjects."""

from __future__ import annotations

import json
import re
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from telecine.errors import BadSpec
from telecine.facts import DAY, HOUR, MINUTE, SECOND, Instant, Millis
from telecine.json_limits import check_json

_LENGTH = re.compile(r"(\d+(?:\.\d+)?)\s*(s|m|min|h|d)")
_UNITS = {"s": SECOND, "m": MINUTE, "min": MINUTE, "h": HOUR, "d": DAY}


def spec_of(text: str | None) -> Any:
    """JSON as it stands, from a file (@path) or from standard input (-)."""
    if text is None:
        return None
    where = "the spec"
    if text == "-":
        text, where = sys.stdin.read(), "standard input"
    elif text.startswith("@"):
        where = text[1:]
        try:
            text = Path(where).read_text()
        except (OSError, UnicodeDecodeError) as error:
            reason = error.strerror if isinstance(error, OSError) else "it is not text"
            raise BadSpec(f"{where} cannot be read: {reason}") from None
    check_json(text, where)
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        place = f"line {error.lineno}, column {error.colno}"
        raise BadSpec(f"{where} is not JSON: {error.msg} at {place}") from None


def length_of(text: str) -> Millis:
    match = _LENGTH.fullmatch(text.strip())
    if match is None:
        raise BadSpec(f"{text!r} is not a length of time; write for example 30s, 10m, 2h or 1d")
    return round(float(match[1]) * _UNITS[match[2]])


def moment_of(text: str, now: Instant, example: str = "+10m") -> Instant:
    """`+10m` from now, `-10m` before now, or a date and time; without a zone it is UTC."""
    if text[:1] in "+-" and text[1:]:
        length = length_of(text[1:])
        return now + length if text[0] == "+" else now - length
    try:
        parsed = datetime.fromisoformat(text)
    except ValueError:
        words = f"write {example}, or a date and time like 2030-01-31T18:00 (UTC)"
        raise BadSpec(f"{text!r} is not a moment; {words}") from None
    return round((parsed if parsed.tzinfo else parsed.replace(tzinfo=UTC)).timestamp() * SECOND)


def subject_of(text: str | None) -> tuple[str, str] | None:
    if text is None:
        return None
    kind, slash, name = text.partition("/")
    if not (kind and slash and name):
        raise BadSpec(f"subject {text!r} is not understood; write kind/id, for example picture/42")
    return kind, name
