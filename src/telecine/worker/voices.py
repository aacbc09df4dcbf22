"""How handlers inside the worker are heard: from the loop itself, or from a thread."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Coroutine
from pathlib import Path
from typing import Any, TypeVar

from telecine.facts import Json, Kept
from telecine.worker.bench import Happened
from telecine.worker.held import Attempt, Held
from telecine.worker.recorder import Recorder
from telecine.worker.scratch import Scratch

T = TypeVar("T")


class InlineVoice:
    """For a handler on the worker's own loop."""

    __slots__ = ("_attempt", "_held", "_recorder", "_scratch")

    def __init__(self, attempt: Attempt, held: Held, recorder: Recorder, scratch: Scratch) -> None:
        self._attempt = attempt
        self._held = held
        self._recorder = recorder
        self._scratch = scratch

    @property
    def stopping(self) -> bool:
        return self._attempt.stopping

    def progress(self, fraction: float, note: str | None) -> None:
        self._held.report(self._attempt, fraction, note)

    def line(self, message: str, level: str, kind: str, data: dict[str, Json] | None) -> None:
        self._held.line(self._attempt, message, level, kind, data)

    def checkpoint(self, name: str, value: Json) -> Awaitable[None]:
        return self._recorder.checkpoint(self._attempt, name, value)

    def keep(self, name: str, path: Path, facts: dict[str, Json]) -> Awaitable[Kept]:
        return self._recorder.keep(self._attempt, name, path, facts)

    def scratch(self) -> Path:
        return self._scratch.folder(self._attempt.key)


class ThreadVoice(InlineVoice):
    """For a handler in a thread: what needs the engine is done by the worker's loop."""

    __slots__ = ("_loop", "_waits")

    def __init__(
        self,
        inline: tuple[Attempt, Held, Recorder, Scratch],
        loop: asyncio.AbstractEventLoop,
        *,
        waits: bool,
    ) -> None:
        super().__init__(*inline)
        self._loop = loop
        self._waits = waits  # a sync handler waits; an async one has a loop of its own and awaits

    def checkpoint(self, name: str, value: Json) -> Awaitable[None]:
        return self._over_there(self._recorder.checkpoint(self._attempt, name, value))

    def keep(self, name: str, path: Path, facts: dict[str, Json]) -> Awaitable[Kept]:
        return self._over_there(self._recorder.keep(self._attempt, name, path, facts))

    def _over_there(self, work: Coroutine[Any, Any, T]) -> Awaitable[T]:
        future = asyncio.run_coroutine_threadsafe(work, self._loop)
        return Happened(future.result()) if self._waits else asyncio.wrap_future(future)
