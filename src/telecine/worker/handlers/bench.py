"""What a handler sees, wherever it runs. Imports little: a child process starts with this."""

from __future__ import annotations

import math
from collections.abc import Awaitable, Generator, Mapping
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from telecine.facts import Brief, Json, KeptArtifact, Lease, StoredArtifact
from telecine.flow import CHILD, LentSource, MediaChild, Reader

if TYPE_CHECKING:
    from telecine.flow import Bench

T = TypeVar("T")
ONLY_INLINE = 'a media child is for handlers that run inline: declare the stage with run="inline"'


class HandlerIo(Protocol):
    """How a bench is heard: by the worker's own loop, from a thread, or over a child's channel."""

    @property
    def stopping(self) -> bool: ...

    def progress(self, fraction: float, note: str | None) -> None: ...

    def line(self, message: str, level: str, kind: str, data: dict[str, Json] | None) -> None: ...

    def checkpoint(self, name: str, value: Json) -> Awaitable[None]: ...

    def keep(self, name: str, path: Path, facts: dict[str, Json], sha256: str | None) -> Awaitable[KeptArtifact]: ...

    def intact(self, kept: KeptArtifact, check: bool) -> Awaitable[bool]: ...

    def artifacts(self, stages: tuple[str, ...]) -> Awaitable[list[StoredArtifact]]: ...

    def published(self) -> Awaitable[list[StoredArtifact]]: ...

    def fetch(self, kept: KeptArtifact) -> Awaitable[Path]: ...

    def read(self, kept: KeptArtifact, start: int, length: int | None) -> Awaitable[bytes]: ...

    def locate(self, kept: KeptArtifact) -> Path | None: ...

    def child(
        self, order: Json, files: Mapping[str, int], source: Reader | None, module: str
    ) -> AbstractAsyncContextManager[MediaChild]: ...

    def lend(self) -> LentSource | None: ...

    def scratch(self) -> Path: ...


class FinishedAwaitable(Generic[T]):
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
        "_kept", "_saved", "_voice", "attempt", "brief", "flow", "input", "job_id", "max_attempts", "position", "slots",
        "spec", "stage", "subject",
    )  # fmt: skip

    def __init__(self, lease: Lease, brief: Brief, voice: HandlerIo) -> None:
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
        self.slots = brief.slots
        self._voice = voice
        self._kept: dict[str, KeptArtifact] = {}
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
            # Plain values, whatever the handler counts with: one that a server refuses would fail the whole heartbeat.
            self._voice.progress(float(min(1.0, max(0.0, fraction))), None if note is None else str(note))

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

    def keep(self, name: str, path: Path, *, sha256: str | None = None, **facts: Json) -> Awaitable[KeptArtifact]:
        return self._heard(self._voice.keep(name, path, facts, sha256))

    def kept(self, name: str, *, check: bool = False) -> Awaitable[KeptArtifact | None]:
        kept = self._kept.get(name) or self.brief.kept.get(name)
        if kept is None or kept.key is None:
            return FinishedAwaitable(None)
        return self._if_intact(kept, self._voice.intact(kept, check))

    def artifacts(self, *stages: str) -> Awaitable[list[StoredArtifact]]:
        return self._voice.artifacts(stages)

    def published(self) -> Awaitable[list[StoredArtifact]]:
        return self._voice.published()

    def fetch(self, kept: KeptArtifact) -> Awaitable[Path]:
        return self._voice.fetch(kept)

    def read(self, kept: KeptArtifact, start: int = 0, length: int | None = None) -> Awaitable[bytes]:
        return self._voice.read(kept, start, length)

    def locate(self, kept: KeptArtifact) -> Path | None:
        return self._voice.locate(kept)

    def lend(self) -> LentSource | None:
        return self._voice.lend()

    def child(
        self,
        order: Json,
        *,
        files: Mapping[str, int] | None = None,
        source: Reader | None = None,
        module: str = CHILD,
    ) -> AbstractAsyncContextManager[MediaChild]:
        return self._voice.child(order, files or {}, source, module)

    def _heard(self, keeping: Awaitable[KeptArtifact]) -> Awaitable[KeptArtifact]:
        """What was kept just now is found by `kept`, too."""
        if isinstance(keeping, FinishedAwaitable):
            self._kept[keeping.value.name] = keeping.value
            return keeping
        return self._remembered(keeping)

    async def _remembered(self, keeping: Awaitable[KeptArtifact]) -> KeptArtifact:
        kept = await keeping
        self._kept[kept.name] = kept
        return kept

    def _if_intact(self, kept: KeptArtifact, looking: Awaitable[bool]) -> Awaitable[KeptArtifact | None]:
        if isinstance(looking, FinishedAwaitable):
            return FinishedAwaitable(kept if looking.value else None)
        return self._looked(kept, looking)

    async def _looked(self, kept: KeptArtifact, looking: Awaitable[bool]) -> KeptArtifact | None:
        return kept if await looking else None

    def _values(self) -> dict[str, Json]:
        if self._saved is None:
            self._saved = {kept.name: kept.value for kept in self.brief.kept.values() if kept.key is None}
        return self._saved


if TYPE_CHECKING:

    def _is_a_bench(bench: HandlerBench) -> Bench:
        return bench
