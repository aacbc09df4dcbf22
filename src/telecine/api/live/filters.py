"""Which events a reader wants, and which of them it may see."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from telecine.engine.accounts.keys import Caller
from telecine.engine.queries.view_models import Subject
from telecine.errors import BadSpec, NotAllowed

MAX_KINDS = 50
MAX_CHARS = 300
_KIND = re.compile(r"[a-z0-9_*.:-]{1,100}", re.IGNORECASE)
_PLACE = re.compile(r"(\d{1,18})(?:\.(\d{1,4}))?")
FILTERS = ("job", "subject", "worker", "kinds")


@dataclass(frozen=True, slots=True, order=True)
class StreamPosition:
    """How far a reader is: all events up to `seq`, and so many lines of the next one."""

    seq: int
    lines: int = 0

    def __str__(self) -> str:
        return f"{self.seq}.{self.lines}" if self.lines else str(self.seq)


def place_in(text: str) -> StreamPosition:
    """A place as a reader gives it back: the id of the last line that it got."""
    if (match := _PLACE.fullmatch(text.strip())) is None:
        raise BadSpec(f"{text[:40]!r} is not the id of an event: give back the last one that you got, as it was")
    return StreamPosition(int(match[1]), int(match[2] or 0))


@dataclass(frozen=True, slots=True, kw_only=True)
class EventFilter:
    """`sees` is the owner whose events are shown; None: everybody's. Equal ones share what is made for them."""

    sees: str | None
    job: int | None = None
    subject: Subject | None = None
    worker: int | None = None
    kinds: tuple[str, ...] = ()

    @property
    def is_plain(self) -> bool:
        """No filter at all, but for the owner."""
        return self.job is None and self.subject is None and self.worker is None and not self.kinds

    def admits(self, owner: str | None, job: int | None, subject: Subject | None, worker: int | None) -> bool:
        """Whether this is told to the reader, whatever its kind. Without an owner it is for administrators only."""
        if self.sees is not None and owner != self.sees:
            return False
        return (
            (self.job is None or job == self.job)
            and (self.subject is None or subject == self.subject)
            and (self.worker is None or worker == self.worker)
        )

    def wants(self, kind: str, *, unasked: bool = True) -> bool:
        """Whether this kind is wanted; `unasked`: also if no kinds were named."""
        if not self.kinds:
            return unasked
        return any(kind == one or (one.endswith("*") and kind.startswith(one[:-1])) for one in self.kinds)


def wanted_by(caller: Caller, filters: dict[str, Any]) -> EventFilter:
    """The filters of a reader, checked; `BadSpec` says what is wrong with one."""
    if unknown := next((name for name in filters if name not in FILTERS), None):
        raise BadSpec(f"there is no filter {unknown[:40]!r}; there are {', '.join(FILTERS)}")
    worker = _number(filters.get("worker"), "worker")
    if worker is not None and not caller.is_admin:
        raise NotAllowed("to follow a worker needs the key of an administrator")
    return EventFilter(
        sees=caller.sees,
        job=_number(filters.get("job"), "job"),
        subject=_subject(filters.get("subject")),
        worker=worker,
        kinds=_kinds(filters.get("kinds")),
    )


def _number(value: object, name: str) -> int | None:
    if value is None:
        return None
    text = str(value)
    if isinstance(value, bool) or not (text.isascii() and text.isdigit()) or len(text) > 18:
        raise BadSpec(f"{name} is a number, not {text[:40]!r}")
    return int(text)


def _subject(value: object) -> Subject | None:
    if value is None:
        return None
    kind, colon, subject_id = str(value).partition(":")
    if not (kind and colon and subject_id) or len(str(value)) > MAX_CHARS:
        raise BadSpec("a subject is written as its kind and its id: picture:holiday")
    return kind, subject_id


def _kinds(value: object) -> tuple[str, ...]:
    if value is None:
        return ()
    parts = value if isinstance(value, list) else str(value).split(",")
    names = tuple(sorted({str(part).strip() for part in parts} - {""}))
    if len(names) > MAX_KINDS or not all(_KIND.fullmatch(name) for name in names):
        raise BadSpec(f"kinds are up to {MAX_KINDS} names, or beginnings such as job.*, parted by commas")
    return names
