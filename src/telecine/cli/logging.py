"""Where a long-running command says what it does: lines on standard error, as text or as JSON."""

from __future__ import annotations

import sys


def log_to_stderr(level: str, style: str) -> None:
    from telecine.observe.logs import log_to

    log_to(sys.stderr, level, style)
