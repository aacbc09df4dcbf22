"""Content security policies: a page runs and shows only what is written in it."""

from __future__ import annotations

import hashlib
import re
from base64 import b64encode

BASE = "default-src 'none'; img-src 'self' data:; base-uri 'none'; frame-ancestors 'none'"


def policy_of(page: str, *more: str) -> str:
    """The policy for a page with inline scripts and styles; what it may do beyond that is in `more`."""
    parts = [BASE, *more]
    for tag, directive in (("script", "script-src"), ("style", "style-src")):
        if inside := re.findall(f"<{tag}>(.*?)</{tag}>", page, re.DOTALL):
            parts.append(f"{directive} {' '.join(_hash(text) for text in inside)}")
    return "; ".join(parts)


def _hash(text: str) -> str:
    return f"'sha256-{b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
