"""Text of strangers on a terminal: names, messages and log lines come from owners and workers.

Control characters in them could forge lines, move the cursor or set the title of the window. They are written as they
are in JSON, `\\u001b`, for everything that a command prints: by `print`, by Rich, in complaints and in log lines.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, Final, TextIO

# C0 but tab and line feed, DEL, C1, separators that some readers take for a line's end, and what turns the direction.
UNSAFE: Final = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069\ufeff]|[\ud800-\udfff]"
)


def safe(text: str) -> str:
    """The text with everything escaped that a terminal would obey."""
    return UNSAFE.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


class SafeStream:
    """A stream for `print`. Rich, which escapes for itself, writes to the one behind it."""

    def __init__(self, stream: TextIO) -> None:
        self.rich_proxied_file = stream

    def write(self, text: str) -> int:
        self.rich_proxied_file.write(safe(text))
        return len(text)

    def writelines(self, lines: Iterable[str]) -> None:
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.rich_proxied_file, name)


@contextmanager
def safe_streams() -> Iterator[None]:
    """Whatever is printed meanwhile is escaped."""
    out, err = sys.stdout, sys.stderr
    sys.stdout, sys.stderr = SafeStream(out), SafeStream(err)
    try:
        yield
    finally:
        sys.stdout, sys.stderr = out, err
