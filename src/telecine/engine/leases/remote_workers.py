"""Workers that come over HTTP, each with a key: who they are, and what they may speak about.

Such a worker is not believed. Its number must belong to the key that it came with, and a lease is its own only if the
database says so. A token belongs to one worker for ever, so what was asked here stays true until the word is heard.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from telecine.engine.accounts.keys import Keys
from telecine.engine.jobs import registration as registering
from telecine.engine.leases.claim import lease_of
from telecine.errors import LeaseLost, NotFound, WorkerGone
from telecine.facts import Lease, Mode, WorkerId
from telecine.store import Ask, Row, Steps
from telecine.worker_facts import Registration

if TYPE_CHECKING:
    from telecine.engine import Engine


@dataclass(frozen=True, slots=True)
class RemoteWorker:
    """A worker of a key."""

    id: WorkerId
    name: str
    release: str


@dataclass(frozen=True, slots=True)
class RecordedArtifact:
    """An artifact as the database knows it."""

    token: int
    key: str
    size: int
    sha256: str


class RemoteWorkers:
    """The engine, as far as it concerns workers with keys."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._store = engine._store

    async def enlist(self, key_id: str, request: str, registration: Registration) -> WorkerId:
        """A process begins. The same request again finds the worker that it was before."""
        return await self._store.run(lambda: _enlist(key_id, request, registration))

    async def about(self, key_id: str) -> dict[str, Any]:
        """What was said when the key was made: capabilities and metadata."""
        rows = await self._store.read(lambda: _rows("key_find", id=key_id))
        return dict(json.loads(rows[0]["facts"])) if rows else {}

    async def worker(self, key_id: str, worker: int) -> RemoteWorker:
        """The worker of this number, if it came with this key."""
        rows = await self._store.read(lambda: _rows("remote_worker", id=worker))
        if not rows or rows[0]["key_id"] != key_id:
            raise WorkerGone(f"worker {worker} did not come with this key: enlist again")
        return RemoteWorker(WorkerId(worker), rows[0]["name"], rows[0]["release"])

    async def lease(self, key_id: str, task_id: int, token: int) -> Lease:
        """The lease, while it is held by a worker of this key; else `LeaseLost` with the reason."""
        return await self._store.read(lambda: self._lease(key_id, task_id, token))

    def _lease(self, key_id: str, task_id: int, token: int) -> Steps[Lease]:
        rows = yield Ask("remote_lease", {"key_id": key_id, "id": task_id, "token": token})
        if not rows:
            raise LeaseLost(task_id, token)
        [row] = rows
        if row["now"] >= row["lease_until"]:
            raise LeaseLost(task_id, token, "lease_expired")
        if row["cancel_asked"]:
            raise LeaseLost(task_id, token, "job_cancelled")
        graphs = yield from self._engine.graph_cache.fetch([row["flow_id"]])
        return lease_of(row, WorkerId(row["worker"]), graphs[row["flow_id"]])

    async def owned(self, key_id: str, named: Sequence[tuple[int, int]]) -> set[tuple[int, int]]:
        """Those (task, token) that workers of this key hold or have held."""
        asked = {"key_id": key_id, "ids": [task for task, _ in named], "tokens": [token for _, token in named]}
        rows = await self._store.read(lambda: _rows("remote_owned", **asked))
        return {(row["id"], row["token"]) for row in rows}

    async def running(self, named: Sequence[tuple[int, int]]) -> set[tuple[int, int]]:
        """Those (task, token) that anybody holds."""
        asked = {"ids": [task for task, _ in named], "tokens": [token for _, token in named]}
        rows = await self._store.read(lambda: _rows("remote_running", **asked))
        return {(row["id"], row["token"]) for row in rows}

    async def readable(self, lease: Lease, key: str) -> None:
        """`NotFound` unless this key is an artifact of the lease's job, or of what its subject shows."""
        kind, subject = lease.subject or (None, None)
        asked = {"key": key, "job_id": lease.job_id, "kind": kind, "subject": subject}
        if "\0" in key or not await self._store.read(lambda: _rows("remote_readable", **asked)):
            raise NotFound(f"there is no artifact {key!r}")

    async def recorded(self, task_id: int, name: str) -> RecordedArtifact | None:
        """What a task has kept under a name, if it is a file."""
        rows = await self._store.read(lambda: _rows("remote_recorded", task_id=task_id, name=name))
        return RecordedArtifact(**{part: rows[0][part] for part in RecordedArtifact.__slots__}) if rows else None

    async def key_of(self, worker: int) -> str | None:
        """The key that a worker came with; None: it came without."""
        rows = await self._store.read(lambda: _rows("key_of_worker", id=worker))
        return rows[0]["key_id"] if rows else None

    async def revoke(self, worker: WorkerId, keys: Keys) -> None:
        """Shut a worker out for good: its work goes back, and the key that it came with opens nothing any more."""
        if (key_id := await self.key_of(worker)) is not None:
            await keys.revoke_if_valid(key_id)
            await self.shut_out(key_id)
        await self._engine.set_mode(worker, Mode.DISABLED, revoke=True)

    async def shut_out(self, key_id: str) -> int:
        """The key is no longer valid: its workers' leases go back at once, unharmed. How many workers that were."""
        rows = await self._store.read(lambda: _rows("remote_crew", key_id=key_id))
        return await self._shut_out(rows)

    async def sweep(self) -> int:
        """Shut out all whose key was revoked or has expired, also where somebody died between the two."""
        return await self._shut_out(await self._store.read(lambda: _rows("remote_barred")))

    async def _shut_out(self, rows: Sequence[Row]) -> int:
        for row in rows:
            await self._engine.set_mode(WorkerId(row["id"]), Mode.DISABLED, revoke=True)
        return len(rows)


def _enlist(key_id: str, request: str, registration: Registration) -> Steps[WorkerId]:
    known = yield Ask("remote_came", {"key_id": key_id, "request": request})
    if known:
        return WorkerId(known[0]["worker"])
    worker = yield from registering.worker(registration)
    yield Ask("remote_bind", {"worker": worker, "key_id": key_id, "request": request})
    return worker


def _rows(statement: str, /, **params: object) -> Steps[list[Row]]:
    return list((yield Ask(statement, params)))
