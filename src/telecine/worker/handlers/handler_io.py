"""How handlers inside the worker are heard: from the loop itself, or from a thread."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Awaitable, Coroutine, Mapping
from contextlib import AbstractAsyncContextManager, suppress
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from telecine.errors import BadSpec
from telecine.facts import Json, KeptArtifact, StoredArtifact
from telecine.flow import LentSource, MediaChild, Reader
from telecine.worker.attempts import Attempt
from telecine.worker.handlers.attempt_tools import AttemptTools
from telecine.worker.handlers.bench import ONLY_INLINE, FinishedAwaitable
from telecine.worker.media.media_child import ChildOptions, media_child
from telecine.worker.media.media_process import MediaProcess

T = TypeVar("T")


class InlineIo:
    """For a handler on the worker's own loop."""

    __slots__ = ("_attempt", "_family", "_recorder", "_tools")

    def __init__(self, attempt: Attempt, tools: AttemptTools) -> None:
        self._attempt = attempt
        self._tools = tools
        self._recorder = tools.recorder
        self._family: set[MediaProcess] | None = None  # media children that live

    @property
    def stopping(self) -> bool:
        return self._attempt.stopping

    def progress(self, fraction: float, note: str | None) -> None:
        self._tools.held.report(self._attempt, fraction, note)

    def line(self, message: str, level: str, kind: str, data: dict[str, Json] | None) -> None:
        self._tools.held.line(self._attempt, message, level, kind, data)

    def checkpoint(self, name: str, value: Json) -> Awaitable[None]:
        return self._recorder.checkpoint(self._attempt, name, value)

    def keep(self, name: str, path: Path, facts: dict[str, Json], sha256: str | None) -> Awaitable[KeptArtifact]:
        return self._recorder.keep(self._attempt, name, path, facts, sha256)

    def intact(self, kept: KeptArtifact, check: bool) -> Awaitable[bool]:
        return self._recorder.intact(self._attempt, self._tools.held, kept, check)

    def artifacts(self, stages: tuple[str, ...]) -> Awaitable[list[StoredArtifact]]:
        return self._recorder.artifacts(self._attempt, stages)

    def published(self) -> Awaitable[list[StoredArtifact]]:
        return self._recorder.published(self._attempt)

    def fetch(self, kept: KeptArtifact) -> Awaitable[Path]:
        return self._recorder.fetch(self._attempt, self._tools.scratch, kept)

    def read(self, kept: KeptArtifact, start: int, length: int | None) -> Awaitable[bytes]:
        return self._recorder.read(self._attempt, kept, start, length)

    def locate(self, kept: KeptArtifact) -> Path | None:
        return self._recorder.locate(kept)

    def lend(self) -> LentSource | None:
        return self._recorder.lend(self._attempt)

    def scratch(self) -> Path:
        return self._tools.scratch.folder(self._attempt.key)

    def child(
        self, order: Json, files: Mapping[str, int], source: Reader | None, module: str
    ) -> AbstractAsyncContextManager[MediaChild]:
        """Whoever ends the attempt ends its children, too: kindly through the handler, hard by ourselves."""
        if self._family is None:
            self._family = set()
            self._attempt.interrupt = partial(_interrupt, self._attempt, self._family, asyncio.get_running_loop())
        ways = ChildOptions(
            program=module,
            folder=self.scratch(),
            forker=self._tools.fork_server,
            nice=self._tools.options.media_nice,
            term=self._tools.options.term,
            mono=self._recorder.mono,
            say=self.line,
        )
        return media_child(ways, order, files, source, self._family)


def _interrupt(attempt: Attempt, family: set[MediaProcess], loop: asyncio.AbstractEventLoop, hard: bool) -> None:
    """From any thread if it must be at once."""
    if hard:
        for process in tuple(family):
            process.send(signal.SIGKILL)
    if isinstance(attempt.task, asyncio.Task):
        with suppress(RuntimeError):  # the loop is closed
            loop.call_soon_threadsafe(attempt.task.cancel)


class ThreadIo(InlineIo):
    """For a handler in a thread: what needs the engine is done by the worker's loop."""

    __slots__ = ("_loop", "_waits")

    def __init__(self, attempt: Attempt, tools: AttemptTools, loop: asyncio.AbstractEventLoop, *, waits: bool) -> None:
        super().__init__(attempt, tools)
        self._loop = loop
        self._waits = waits  # a sync handler waits; an async one has a loop of its own and awaits

    def checkpoint(self, name: str, value: Json) -> Awaitable[None]:
        return self._over_there(self._recorder.checkpoint(self._attempt, name, value))

    def keep(self, name: str, path: Path, facts: dict[str, Json], sha256: str | None) -> Awaitable[KeptArtifact]:
        return self._over_there(self._recorder.keep(self._attempt, name, path, facts, sha256))

    def intact(self, kept: KeptArtifact, check: bool) -> Awaitable[bool]:
        return self._over_there(self._recorder.intact(self._attempt, self._tools.held, kept, check))

    def artifacts(self, stages: tuple[str, ...]) -> Awaitable[list[StoredArtifact]]:
        return self._over_there(self._recorder.artifacts(self._attempt, stages))

    def published(self) -> Awaitable[list[StoredArtifact]]:
        return self._over_there(self._recorder.published(self._attempt))

    def fetch(self, kept: KeptArtifact) -> Awaitable[Path]:
        return self._over_there(self._recorder.fetch(self._attempt, self._tools.scratch, kept))

    def read(self, kept: KeptArtifact, start: int, length: int | None) -> Awaitable[bytes]:
        return self._over_there(self._recorder.read(self._attempt, kept, start, length))

    def child(
        self, order: Json, files: Mapping[str, int], source: Reader | None, module: str
    ) -> AbstractAsyncContextManager[MediaChild]:
        raise BadSpec(ONLY_INLINE)

    def lend(self) -> LentSource | None:
        return None

    def _over_there(self, work: Coroutine[Any, Any, T]) -> Awaitable[T]:
        future = asyncio.run_coroutine_threadsafe(work, self._loop)
        return FinishedAwaitable(future.result()) if self._waits else asyncio.wrap_future(future)
