"""Where a long-running command says what it does: lines on standard error, as text or as JSON."""

from __future__ import annotations

import json
import logging
import sys
import time
from datetime import UTC, datetime


class JsonLines(logging.Formatter):
    """One object per line, with the same keys always."""

    def format(self, record: logging.LogRecord) -> str:
        at = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        line = {"at": at, "level": record.levelname.lower(), "logger": record.name, "message": record.getMessage()}
        if record.exc_info:
            line["error"] = self.formatException(record.exc_info)
        return json.dumps(line, ensure_ascii=False)


class TextLines(logging.Formatter):
    converter = staticmethod(time.gmtime)  # UTC, like everything that we print

    def __init__(self) -> None:
        super().__init__("%(asctime)sZ %(levelname)-7s %(message)s", datefmt="%Y-%m-%d %H:%M:%S")


def log_to_stderr(level: str, style: str) -> None:
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines() if style == "json" else TextLines())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level.upper())
