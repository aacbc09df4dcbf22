"""Which workers are too old to get work."""

from __future__ import annotations

import re


def too_old(release: str, least: str | None) -> str | None:
    """Why this worker drains, in one sentence; None if it need not. A release that says nothing is an old one."""
    if least is None or _numbers(release) >= _numbers(least):
        return None
    return f"this worker is of release {release or 'unknown'}, and the server wants {least} or newer: update it"


def _numbers(release: str) -> tuple[int, ...]:
    found = re.match(r"\d+(\.\d+)*", release.strip().lstrip("v"))
    return tuple(int(part) for part in found[0].split(".")) if found else ()
