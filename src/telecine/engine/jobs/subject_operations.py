"""What callers do with subjects: the things that jobs are about, their facts and their published versions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from telecine.engine.jobs import delete_subject, versions
from telecine.engine.queries import subjects
from telecine.engine.queries.view_models import Page, SubjectLine, SubjectView
from telecine.facts import Instant, Json

if TYPE_CHECKING:
    from telecine.engine import Engine

Who = tuple[str, str]  # kind and id


class SubjectOperations:
    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._store = engine._store
        self._graphs = engine.graph_cache

    async def get(self, kind: str, subject_id: str) -> SubjectView:
        return await self._store.read(lambda: subjects.subject(kind, subject_id, self._graphs))

    async def list(
        self, kind: str, *, owner: str | None = None, cursor: str | None = None, limit: int = 100
    ) -> Page[SubjectLine]:
        return await self._store.read(
            lambda: subjects.subjects(kind, self._graphs, owner=owner, cursor=cursor, limit=limit)
        )

    async def learn(self, subject: Who, owner: str, facts: dict[str, Any]) -> None:
        """Add facts that come from outside the jobs of a subject; handlers read them in their brief."""
        await self._store.run(lambda: subjects.learn(subject, owner, facts))

    async def show_version(
        self, who: Who, number: int, *, facts: Mapping[str, Json] | None = None, actor: str = ""
    ) -> bool:
        """Show another version; False if it is shown already."""
        return await self._store.run(lambda: versions.show(who, number, facts=facts, actor=actor))

    async def keep_version(self, who: Who, number: int, wanted: bool = True, *, actor: str = "") -> bool:
        """Protect a version from retention, or stop protecting it; False if nothing changed."""
        return await self._store.run(lambda: versions.keep(who, number, wanted, actor=actor))

    async def delete(self, who: Who, *, actor: str = "") -> None:
        """Cancel the jobs of a subject and hide it for good; its bytes are freed when the last worker has ended."""
        await delete_subject.delete(self._engine, who, actor=actor)

    async def deleted_at(self, who: Who) -> Instant | None:
        return await delete_subject.gone_since(self._engine, who)
