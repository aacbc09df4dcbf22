"""What a worker says, and to whom: the same words straight on the engine or over HTTP."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, runtime_checkable

from telecine.artifacts import S3Access
from telecine.engine import Sweep
from telecine.engine.jobs.registration import Registration
from telecine.engine.leases.lease_operations import NOTHING, Totals
from telecine.errors import KeyInvalid
from telecine.facts import (
    BEAT,
    LEASE,
    SECOND,
    SWEEP,
    Answer,
    Brief,
    Holding,
    Kept,
    Lease,
    Line,
    Millis,
    Mode,
    Orders,
    Shelved,
    TaskId,
    Word,
    WorkerId,
)
from telecine.worker.artifact_place import Place
from telecine.worker.current import Observer


class Words(Protocol):
    """The engine as a worker knows it. Every word may be repeated when its answer was lost."""

    async def enlist(self, registration: Registration) -> WorkerId: ...

    async def claim(self, worker: WorkerId, request: str, lanes: Mapping[str, str], wanted: int) -> list[Lease]: ...

    async def glance(self, lanes: Mapping[str, str]) -> bool: ...

    async def brief(self, lease: Lease) -> Brief: ...

    async def artifacts(self, lease: Lease, stages: Sequence[str]) -> list[Shelved]: ...

    async def published(self, lease: Lease) -> list[Shelved]: ...

    async def beat(self, worker: WorkerId, held: Sequence[Holding], totals: Totals = NOTHING) -> Orders: ...

    async def keep(self, task_id: TaskId, token: int, items: Sequence[Kept]) -> None: ...

    async def log(self, lines: Sequence[Line]) -> None: ...

    async def settle(self, words: Sequence[Word]) -> list[Answer]: ...

    async def release(self, leases: Iterable[tuple[TaskId, int]], reason: str = "released") -> list[Answer]: ...

    async def set_mode(self, worker: WorkerId, mode: Mode, *, revoke: bool = False) -> None: ...

    async def retire(self, worker: WorkerId) -> None: ...


@runtime_checkable
class Sweeper(Protocol):
    """Words that can also do the fleet's recovery; those over HTTP leave it to the server."""

    async def sweep(self, period: Millis = SWEEP) -> Sweep: ...


@runtime_checkable
class Far(Protocol):
    """Words that go to a server: it may shut the worker out, it has the artifacts, and claims wait there."""

    place: Place

    async def barred(self) -> KeyInvalid: ...

    def hurry(self) -> None: ...


OpenWords = Callable[[], AbstractAsyncContextManager[Words]]


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerOptions:
    """How one worker works. Times in seconds; `lease` in milliseconds, as the engine grants it."""

    name: str
    scratch: Path
    slots: int = 1
    labels: tuple[str, ...] = ()
    artifacts: str | None = None  # folder or URL; none: `bench.keep` is refused
    s3: S3Access | None = None  # how to reach the bucket, if it is one
    grace: float = 300.0  # how long a drain lets handlers finish
    poll: float = 1.0  # how often an idle worker looks by itself
    beat: float = BEAT / SECOND
    news: float = 1.0  # progress and log lines do not wait longer than this for their beat
    sweep: float = SWEEP / SECOND
    term: float = 5.0  # from TERM to KILL
    media_nice: int = 0  # how far media children yield to other processes
    lease: Millis = LEASE
    observer: Observer | None = None

    @property
    def lease_seconds(self) -> float:
        return self.lease / SECOND

    @property
    def margin(self) -> float:
        """How long before the end of a lease its work must be dead."""
        return self.lease_seconds / 8
