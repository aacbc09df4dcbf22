"""How events are put into words: a voice makes lines of them, each line once for all its readers.

    Told ──▶ lines: name and body ──▶ those that the reader wants ──▶ bytes, with the id to resume after

An event may become several lines. The last of them that a reader gets carries the event's number as its id; those
before it carry `<number before>.<lines given>`: who was cut off in between gets the rest, and nothing twice.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, NamedTuple, Protocol

from telecine.api.live.filters import EventFilter, StreamPosition
from telecine.engine.events.event_context import DescribedEvent
from telecine.engine.queries.live_progress import Moving


class EventLine(NamedTuple):
    """`unasked`: told also to readers who named no kinds. `body` is what is sent, without its id."""

    name: str
    body: dict[str, Any]
    unasked: bool = True


class EventEncoder(Protocol):
    """One way to say events. `name` keeps apart what is remembered for each."""

    name: str

    def lines(self, told: DescribedEvent) -> tuple[EventLine, ...]: ...

    def progress(self, moving: Moving) -> tuple[EventLine, ...]: ...

    def worker(self, state: str, worker: int, name: str | None) -> EventLine: ...

    def about(self, name: str, body: dict[str, Any]) -> EventLine:
        """A line about the stream itself: reset, snapshot, statistics, goodbye."""

    def wire(self, line: EventLine, place: StreamPosition | None) -> bytes:
        """A line as it is sent; without a place it cannot be resumed after."""

    def alive(self, place: StreamPosition) -> bytes:
        """A sign of life, which moves the reader's place on."""


def dumps(value: object) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False, default=str)


def spoken(voice: EventEncoder, told: DescribedEvent, wanted: EventFilter, skip: int) -> Iterator[bytes]:
    """An event as this reader gets it; `skip` lines of it were given before."""
    event = told.event
    if not wanted.admits(told.owner, event.job_id, told.subject, event.worker):
        return
    lines = _made(voice, told)
    shown = [n for n, line in enumerate(lines) if _passes(line, wanted)]
    for n in shown:
        if n < skip:
            continue
        last = n == shown[-1]
        if last and len(lines) == 1:
            yield _once(voice, told, lines[0])
        else:
            yield voice.wire(lines[n], StreamPosition(event.seq) if last else StreamPosition(event.seq - 1, n + 1))


def passing(lines: tuple[EventLine, ...], wanted: EventFilter) -> list[EventLine]:
    return [line for line in lines if _passes(line, wanted)]


def _passes(line: EventLine, wanted: EventFilter) -> bool:
    return wanted.wants(line.name, unasked=line.unasked or wanted.subject is not None)


def _made(voice: EventEncoder, told: DescribedEvent) -> tuple[EventLine, ...]:
    lines: tuple[EventLine, ...] | None = told.forms.get(voice.name)
    if lines is None:
        lines = told.forms[voice.name] = voice.lines(told)
    return lines


def _once(voice: EventEncoder, told: DescribedEvent, line: EventLine) -> bytes:
    """Of the many readers of one line all get the same bytes."""
    key = f"{voice.name} wire"
    made: bytes | None = told.forms.get(key)
    if made is None:
        made = told.forms[key] = voice.wire(line, StreamPosition(told.event.seq))
    return made
