"""Where artifacts are, as a worker sees it: a folder or a bucket of its own, or the server's."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

from telecine.artifacts import Artifacts, Moved, Stored, key_for_lease
from telecine.flow import LentSource
from telecine.worker.attempts import Attempt


class ArtifactPlace(Protocol):
    @property
    def folder(self) -> Path | None:
        """The folder of all artifacts, if there is one on this machine."""

    def path(self, key: str) -> Path | None:
        """Where the bytes lie on this machine, if they do."""

    async def put(
        self, attempt: Attempt, name: str, path: Path, moved: Moved, sha256: str | None = None
    ) -> tuple[str, Stored]:
        """Store a file for this attempt, whole or not at all; its key, and what was stored.

        `sha256`: its hash, if it is known; a place that checks it anyway need not compute it first."""

    async def get(self, attempt: Attempt, key: str, path: Path, moved: Moved) -> Stored: ...

    async def read(self, attempt: Attempt, key: str, start: int, length: int | None, size: int | None) -> bytes: ...

    async def digest(self, attempt: Attempt, key: str, moved: Moved) -> Stored: ...

    async def stat(self, attempt: Attempt, key: str) -> int: ...

    def lend(self, attempt: Attempt) -> LentSource | None:
        """The source of the attempt's job, if it must be read through somebody else."""


class LocalArtifacts:
    """Artifacts that this worker reaches by itself."""

    def __init__(self, artifacts: Artifacts) -> None:
        self._artifacts = artifacts

    @property
    def folder(self) -> Path | None:
        return self._artifacts.folder

    def path(self, key: str) -> Path | None:
        return self._artifacts.path(key)

    async def put(
        self, attempt: Attempt, name: str, path: Path, moved: Moved, sha256: str | None = None
    ) -> tuple[str, Stored]:
        key = key_for_lease(attempt.lease, name)
        return key, await self._artifacts.put(key, path, moved)

    async def get(self, attempt: Attempt, key: str, path: Path, moved: Moved) -> Stored:
        return await self._artifacts.get(key, path, moved)

    async def read(self, attempt: Attempt, key: str, start: int, length: int | None, size: int | None) -> bytes:
        return await self._artifacts.read(key, start, length, size=size)

    async def digest(self, attempt: Attempt, key: str, moved: Moved) -> Stored:
        return await self._artifacts.digest(key, moved)

    async def stat(self, attempt: Attempt, key: str) -> int:
        return await self._artifacts.stat(key)

    def lend(self, attempt: Attempt) -> LentSource | None:
        return None
