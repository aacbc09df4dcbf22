"""The engine as a worker calls it: in its own process (`local_engine`) or over HTTP (`http`)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from telecine.artifacts import S3Access
from telecine.errors import KeyInvalid
from telecine.facts import (
    BEAT,
    LEASE,
    SECOND,
    SWEEP,
    Brief,
    HeldLease,
    KeptArtifact,
    Lease,
    LeaseOutcome,
    LogEntry,
    Millis,
    Mode,
    Orders,
    SettleReply,
    StoredArtifact,
    TaskId,
    WorkerId,
)
from telecine.worker.artifact_place import ArtifactPlace
from telecine.worker.current import Observer
from telecine.worker_facts import NO_TOTALS, Registration, Totals


class EngineApi(Protocol):
    """The engine as a worker knows it. Every call may be repeated when its answer was lost."""

    @property
    def place(self) -> ArtifactPlace | None:
        """The artifacts of the server that this talks to; None: the options of the worker say where they are."""

    async def enlist(self, registration: Registration) -> WorkerId: ...

    async def claim(self, worker: WorkerId, request: str, lanes: Mapping[str, str], wanted: int) -> list[Lease]: ...

    async def glance(self, lanes: Mapping[str, str]) -> bool: ...

    async def brief(self, lease: Lease) -> Brief: ...

    async def artifacts(self, lease: Lease, stages: Sequence[str]) -> list[StoredArtifact]: ...

    async def published(self, lease: Lease) -> list[StoredArtifact]: ...

    async def beat(self, worker: WorkerId, held: Sequence[HeldLease], totals: Totals = NO_TOTALS) -> Orders: ...

    async def keep(self, task_id: TaskId, token: int, items: Sequence[KeptArtifact]) -> None: ...

    async def log(self, lines: Sequence[LogEntry]) -> None: ...

    async def settle(self, words: Sequence[LeaseOutcome]) -> list[SettleReply]: ...

    async def release(self, leases: Iterable[tuple[TaskId, int]], reason: str = "released") -> list[SettleReply]: ...

    async def set_mode(self, worker: WorkerId, mode: Mode, *, revoke: bool = False) -> None: ...

    async def retire(self, worker: WorkerId) -> None: ...

    async def sweep(self, period: Millis) -> int | None:
        """Recover what other workers lost; how many tasks that were. None: the server does it, do not call again."""

    async def shut_out(self) -> KeyInvalid:
        """Returns when the server no longer accepts the key of this worker; without a key, never."""

    def hurry(self) -> None:
        """The worker is about to leave: from now on a claim waits for nothing."""


OpenEngine = Callable[[], AbstractAsyncContextManager[EngineApi]]


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
