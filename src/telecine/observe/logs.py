"""Log lines: one event each, as text or as JSON, with what is known about where they come from.

A line cannot be forged: control characters of whatever was logged are shown, not obeyed. And none holds a secret: keys,
login links, passwords in addresses and signatures are struck out, whoever logged them.
"""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Callable, MutableMapping
from datetime import UTC, datetime
from typing import Any, TextIO

import structlog
from structlog.stdlib import ProcessorFormatter

from telecine.facts import Lease
from telecine.worker.current import current_lease

Event = MutableMapping[str, Any]
_PLAIN = logging.Formatter()
_JSON = json.JSONEncoder(ensure_ascii=False, default=str).encode
_USUAL = frozenset(logging.makeLogRecord({}).__dict__) | {"message", "asctime"}

# Their own stories, which ours replace; what goes wrong in them is heard.
QUIET = ("uvicorn", "uvicorn.error", "uvicorn.access", "websockets", "httpx", "httpcore", "asyncio", "opentelemetry")
# What the message of these loggers says already: not twice in a line for people.
_SAID = {"telecine.access": ("method", "route", "status", "ms")}
# C0, DEL, C1, the two separators that some readers take for the end of a line, and what turns the direction.
_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")
# Each secret below has one of these beside it. Most lines have none, and to look for them costs next to nothing.
_MARKS = ("tcn_", "/login/", "bearer", "?", "&", "@")
_SECRETS = (
    (re.compile(r"tcn_(admin|owner|worker)_([0-9a-f]{12})_[0-9a-f]+(_[0-9a-f]*)?"), r"tcn_\1_\2_…"),
    (re.compile(r"(/login/)[^\s\"'/?#{\\]+"), r"\1…"),
    (re.compile(r"\b(bearer\s+)(?!tcn_)[^\s\"',\\]+", re.IGNORECASE), r"\1…"),
    (re.compile(r"(\w://[^\s:/@\"]*):[^\s/@\"]+@"), r"\1:…@"),
    (
        re.compile(r"([?&][\w-]*(?:signature|token|secret|password|credential|key)[\w-]*=)[^&\s\"'\\]+", re.IGNORECASE),
        r"\1…",
    ),
)


def struck(text: str) -> str:
    """The text without secrets."""
    low = text.lower()
    if any(mark in low for mark in _MARKS):
        for pattern, instead in _SECRETS:
            text = pattern.sub(instead, text)
    return text


def shown(text: str) -> str:
    """The text with its control characters as they are written in JSON."""
    return _CONTROL.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


class LogFormatter(ProcessorFormatter):
    """Lines of the standard library's loggers, ours and others'. `trace_of` names the trace of a job, if it has one."""

    def __init__(self, style: str, trace_of: Callable[[int], str | None] | None = None) -> None:
        self.trace_of = trace_of
        self._written = _as_json if style == "json" else _as_text
        super().__init__(processors=[structlog.contextvars.merge_contextvars, self._place, _stamp, self._written])

    def format(self, record: logging.LogRecord) -> str:
        if isinstance(record.msg, dict):  # a logger of structlog, in somebody's flow
            return super().format(record)
        # All others take the short way: a server writes a line for each request.
        event = {key: value for key, value in record.__dict__.items() if key not in _USUAL}
        event.update(structlog.contextvars.get_contextvars())
        event.update(_record=record, event=record.getMessage(), exc_info=record.exc_info)
        return self._written(None, "", _stamp(None, "", self._place(None, "", event)))

    def _place(self, logger: Any, name: str, event: Event) -> Event:
        """Whose line it is: the attempt that runs here, and its trace."""
        lease: Lease | None = current_lease.get()
        if lease is not None:
            mine = {"job": lease.job_id, "task": lease.task_id, "token": lease.token, "worker": lease.worker}
            for key, value in mine.items():
                event.setdefault(key, value)
        if self.trace_of is not None and isinstance(job := event.get("job"), int) and "trace" not in event:
            event["trace"] = self.trace_of(job)
        return event


def _stamp(logger: Any, name: str, event: Event) -> Event:
    """The same keys first, always, in the same order."""
    record: logging.LogRecord = event.pop("_record")
    event.pop("_from_structlog", None)
    message, error = event.pop("event"), event.pop("exc_info", None)
    at = datetime.fromtimestamp(record.created, UTC)
    first: Event = {
        "at": at.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
        "level": record.levelname.lower(),
        "logger": record.name,
        "message": message,
    }
    rest = {key: value for key, value in event.items() if value is not None and key not in first}
    if error and error[0] is not None:
        rest["error"] = _PLAIN.formatException(error)
    return {**first, **rest}


def _as_json(logger: Any, name: str, event: Event) -> str:
    # JSON itself shows what is below a space; the rest is ours to show.
    return shown(struck(_JSON(event)))


def _as_text(logger: Any, name: str, event: Event) -> str:
    at, level, message = event.pop("at"), event.pop("level"), event.pop("message")
    for said in _SAID.get(event.pop("logger"), ()):
        event.pop(said, None)
    error = event.pop("error", None)
    more = "".join(f" {key}={value}" for key, value in event.items())
    lines = [f"{at[:19].replace('T', ' ')}Z {level.upper():<7} {message}{more}"]
    if error is not None:  # many lines; what is indented is none of ours
        lines += (f"    {line}" for line in error.splitlines())
    return "\n".join(struck(shown(line)) for line in lines)


def name_traces(trace_of: Callable[[int], str | None] | None) -> None:
    """From now on lines about a job name its trace."""
    for handler in logging.getLogger().handlers:
        if isinstance(handler.formatter, LogFormatter):
            handler.formatter.trace_of = trace_of


def log_to(stream: TextIO, level: str, style: str) -> None:
    """Let every logger of this process write there."""
    handler = logging.StreamHandler(stream)
    handler.setFormatter(LogFormatter(style))
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level.upper())
    for name in QUIET:
        logging.getLogger(name).setLevel(max(logging.WARNING, root.level))
