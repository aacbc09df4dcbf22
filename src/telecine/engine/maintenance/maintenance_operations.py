"""What the housekeeper does: audit, retention, and the bytes that no artifact names any more."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import TYPE_CHECKING

from telecine.engine.jobs.delete_job import put_away_deleted
from telecine.engine.jobs.delete_subject import clear_gone
from telecine.engine.jobs.graph_cache import GraphCache
from telecine.engine.maintenance import artifact_gc, audit, retention
from telecine.engine.maintenance.audit import Auditor
from telecine.engine.maintenance.retention import Ages, Retired
from telecine.facts import Millis

if TYPE_CHECKING:
    from telecine.engine import Engine


class MaintenanceOperations:
    """Has its own cache of graphs, so that a wrong one in the engine's cache is found by the audit."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._store = engine._store
        self._graphs = GraphCache()
        self._auditor = Auditor(self._store, self._graphs)

    async def audit_next(self) -> audit.AuditBatch:
        """Audit the next batch; new findings become events."""
        return await self._auditor.look()

    async def inspect(self, place: audit.AuditPosition) -> audit.AuditBatch:
        """Audit one batch from this place on; nothing is written."""
        return await self._store.read(lambda: audit.look(place, self._graphs, audit.BATCH))

    def retire(self, ages: Ages) -> AsyncGenerator[Retired, None]:
        """Archive and delete all that is old, batch by batch."""
        return retention.retire(self._store, self._graphs, ages)

    async def retire_versions(self, age: Millis) -> Retired:
        return await retention.retire_versions(self._store, age)

    async def archive_deleted_jobs(self, version_age: Millis) -> Retired:
        return await put_away_deleted(self._store, self._graphs, version_age)

    async def clear_deleted_subjects(self) -> int:
        return await clear_gone(self._engine)

    async def delete_freed(self, place: artifact_gc.ArtifactFiles) -> int:
        """Delete the bytes that were freed; how many files."""
        return await artifact_gc.clear(self._store, place)
