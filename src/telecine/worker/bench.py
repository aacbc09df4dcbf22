"""What a handler sees, wherever it runs. Imports little: a child process starts with this."""

from __future__ import annotations

import math
from collections.abc import Awaitable, Generator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from telecine.facts import Brief, Json, Kept, Lease

if TYPE_CHECKING:
    from telecine.flow import Bench

T = TypeVar("T")


class Voice(Protocol):
    """How a bench is heard: by the worker's own loop, from a thread, or over a child's channel."""

    @property
    def stopping(self) -> bool: ...

    def progress(self, fraction: float, note: str | None) -> None: ...

    def line(self, message: str, level: str, kind: str, data: dict[str, Json] | None) -> None: ...

    def checkpoint(self, name: str, value: Json) -> Awaitable[None]: ...

    def keep(self, name: str, path: Path, facts: dict[str, Json]) -> Awaitable[Kept]: ...

    def scratch(self) -> Path: ...


class Happened(Generic[T]):
    """An awaitable for a sync handler's call: it is over, and may be awaited all the same."""

    __slots__ = ("value",)

    def __init__(self, value: T) -> None:
        self.value = value

    def __await__(self) -> Generator[Any, None, T]:
        yield from ()  # an awaitable must be a generator, even one that never waits
        return self.value


class HandlerBench:
    """The one implementation of `flow.Bench`."""

    __slots__ = (
        "_saved", "_voice", "attempt", "brief", "flow", "input", "job_id", "max_attempts", "position", "spec", "stage",
        "subject",
    )  # fmt: skip

    def __init__(self, lease: Lease, brief: Brief, voice: Voice) -> None:
        self.job_id: int = lease.job_id
        self.flow = lease.flow
        self.stage = lease.stage
        self.position = lease.position
        self.attempt = lease.attempt
        self.max_attempts = lease.max_attempts
        self.spec = lease.spec
        self.input = lease.input
        self.subject = lease.subject
        self.brief = brief
        self._voice = voice
        self._saved: dict[str, Json] | None = None

    @property
    def scratch(self) -> Path:
        return self._voice.scratch()

    @property
    def stopping(self) -> bool:
        return self._voice.stopping

    def progress(self, done: float, of: float = 1.0, note: str | None = None) -> None:
        fraction = done / of if of else 1.0
        if math.isfinite(fraction):
            self._voice.progress(min(1.0, max(0.0, fraction)), note)

    def log(self, message: str, level: str = "info", **data: Json) -> None:
        self._voice.line(message, level, "log", data or None)

    def step(self, command: str, *, exit_code: int | None = None, tail: str = "", **data: Json) -> None:
        level = "error" if exit_code else "info"
        self._voice.line(command, level, "step", {"exit_code": exit_code, "tail": tail, **data})

    def checkpoint(self, name: str, value: Json) -> Awaitable[None]:
        recorded = self._voice.checkpoint(name, value)
        self._values()[name] = value
        return recorded

    def saved(self, name: str, default: Json = None) -> Json:
        return self._values().get(name, default)

    def keep(self, name: str, path: Path, **facts: Json) -> Awaitable[Kept]:
        return self._voice.keep(name, path, facts)

    def _values(self) -> dict[str, Json]:
        if self._saved is None:
            self._saved = {kept.name: kept.value for kept in self.brief.kept.values() if kept.key is None}
        return self._saved


if TYPE_CHECKING:

    def _is_a_bench(bench: HandlerBench) -> Bench:
        return bench  # type: ignore[return-value]
