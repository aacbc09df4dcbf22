"""A film outside the engine: a folder that grows while it is encoded, or is written when it is done."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from pathlib import Path
from tempfile import TemporaryDirectory

from telecine.artifacts import Artifacts
from telecine.engine.views import Views
from telecine.errors import NotFound
from telecine.facts import Kept, Shelved
from telecine.flows.transcode.collecting import INIT, STAGES, Recorded, collect
from telecine.flows.transcode.plan import Plan
from telecine.media.export import Export, Item
from telecine.videos.recorded import dropped_of, plan_of


class Showing:
    """One job's film in a folder: `update` shows what may be watched already, `finish` the whole."""

    def __init__(self, views: Views, artifacts: Artifacts, job_id: int, folder: Path) -> None:
        self._views = views
        self._artifacts = artifacts
        self._job_id = job_id
        self._folder = folder

    async def update(self) -> int:
        """Show what there is; answers how many segments of all required renditions can be watched."""
        recorded = await self._recorded()
        if recorded is None or not recorded.film.prefix:
            return 0
        await self._write(recorded, None)
        return recorded.film.prefix

    async def finish(self) -> Path:
        """The whole film; the path of its master playlist."""
        recorded = await self._recorded()
        if recorded is None:
            raise NotFound(f"job {self._job_id} has nothing to show yet")
        if any(len(one.pieces) != recorded.segments for one in recorded.film.renditions):
            raise NotFound(f"parts of what job {self._job_id} has made are not there: make the film anew")
        extras = {one.kept.name: one.kept for one in await self._views.kept(self._job_id, "poster", "sprites")}
        await self._write(recorded, extras)
        return self._folder / "master.m3u8"

    async def _recorded(self) -> Recorded | None:
        plan = await plan_of(self._views, self._job_id)
        if plan is None or any(rung.name not in plan.inits for rung in plan.rungs):
            return None  # there is no plan yet, or its encoder was not opened yet
        job = await self._views.job(self._job_id)
        shelved = await self._views.kept(self._job_id, *STAGES)
        if plan.carried_ids and job.subject is not None:
            shelved += await self._carried(plan, job.subject)
        return collect(plan, shelved, await dropped_of(self._views, job))

    async def _carried(self, plan: Plan, subject: tuple[str, str]) -> Iterable[Shelved]:
        """Once published they are copies of their rows under this job; before, rows of the version before."""
        if own := await self._views.carried(self._job_id):
            return own
        wanted = set(plan.carried_ids)
        return [one for one in await self._views.published(*subject) if one.id in wanted]

    async def _write(self, recorded: Recorded, extras: dict[str, Kept] | None) -> None:
        with Export(self._folder, str(self._job_id)) as export, TemporaryDirectory() as spare:
            paths: dict[Item, Path] = {}
            for item in export.lacking(recorded.film if extras is not None else recorded.film.preview()):
                kind, name, number = item
                kept = recorded.kept[name, INIT if kind == "init" else number]
                paths[item] = await self._file(kept, Path(spare) / f"{name}-{kind}-{number}")
            if extras is None:
                await asyncio.to_thread(export.update, recorded.film, lambda *item: paths[item])
                return
            beside = {name: await self._file(kept, Path(spare) / name) for name, kept in extras.items()}
            await asyncio.to_thread(export.finish, recorded.film, lambda *item: paths[item], beside)

    async def _file(self, kept: Kept, spare: Path) -> Path:
        """Where the bytes lie; those in a bucket are brought here first."""
        assert kept.key is not None
        path = self._artifacts.path(kept.key)
        if path is None:
            await self._artifacts.get(kept.key, spare)
        return path or spare
