"""Films as players fetch them: playlists made from recorded facts, and the addresses of the pieces as they lie.

    master.m3u8                         of the version that is shown
    v3/720p/index.m3u8  iframes.m3u8    of version 3                     ──▶ s/<artifact>-<token>.m4s
    v3/poster.jpg  thumbs.vtt           pictures beside it
    preview/17/720p/index.m3u8          of job 17, while it grows        ──▶ s/<artifact>-<token>.m4s

All below one folder per video. Nothing is copied. A version never changes, so its lists are made once and remembered;
a preview is looked at anew, though not for every viewer.
"""

from __future__ import annotations

import asyncio
import json
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Hashable, Iterable, Mapping
from pathlib import PurePosixPath
from typing import Generic, TypeVar
from urllib.parse import quote

from telecine.apps.transcode.plan import TranscodePlan
from telecine.apps.transcode.stages.package import LISTS, MASTER
from telecine.apps.transcode.stages.recorded_rows import INIT, RecordedRows, collect
from telecine.apps.transcode.stages.stage_inputs import PLAN
from telecine.apps.transcode.videos.recorded_facts import RecordedFacts
from telecine.artifacts import Artifacts
from telecine.engine.queries.query_operations import Queries
from telecine.errors import NotFound
from telecine.facts import Status, StoredArtifact
from telecine.media.hls import playlists
from telecine.media.hls.playlists import Kind
from telecine.media.hls.recorded_film import Film
from telecine.media.plain_json import from_plain

Lists = Mapping[str, bytes]
K = TypeVar("K", bound=Hashable)
V = TypeVar("V")
MAX_VERSIONS = 32
MAX_PREVIEWS = 64
LOOK_SECONDS = 0.5
MAX_PAUSE = 15.0  # well below inventory.YOUNG
PIECES = "s"


class PlaylistCache:
    """Makes the lists of films, for as many viewers as there are."""

    def __init__(self, views: Queries, artifacts: Artifacts, mono: Callable[[], float]) -> None:
        self._views = views
        self._artifacts = artifacts
        self._mono = mono
        self._versions: RecentValues[tuple[int, int], Lists] = RecentValues(MAX_VERSIONS)
        self._previews: RecentValues[int, GrowingPlaylist] = RecentValues(MAX_PREVIEWS)

    async def version(self, version_id: int, number: int) -> Lists:
        """All lists of a version by their path from the video; `NotFound` if it has no film.

        The master is there twice: in the version's folder, and beside all of them, for whoever wants what is shown.
        """
        return await self._versions.get((version_id, number), self._made)

    async def preview(self, job_id: int, status: str) -> Lists:
        """The lists of what may be watched of a job by now."""

        async def begun(job_id: int) -> GrowingPlaylist:
            return GrowingPlaylist(self._views, job_id, self._mono)

        return await (await self._previews.get(job_id, begun)).lists(whole=status == Status.COMPLETED)

    async def _made(self, which: tuple[int, int]) -> Lists:
        version_id, number = which
        files = await self._views.of_version(version_id)
        kept = next((one.kept for one in files if one.kept.name == PLAN and one.kept.key is not None), None)
        if kept is None or kept.key is None:
            raise NotFound("this version has no film: make it anew")
        plan = from_plain(TranscodePlan, json.loads(await self._artifacts.read(kept.key, size=kept.size)))
        return await asyncio.to_thread(_lists_of_version, plan, files, number)


class GrowingPlaylist:
    """One job's film while it grows. Whoever asks within half a second of another gets the same answer."""

    def __init__(self, views: Queries, job_id: int, mono: Callable[[], float]) -> None:
        self._views = views
        self._job_id = job_id
        self._mono = mono
        self._looking = asyncio.Lock()
        self._recording = RecordedFacts(views, job_id)
        self._recorded: RecordedRows | None = None
        self._lists: Lists = {}
        self._looked_at: float | None = None
        self._ended = False

    async def lists(self, *, whole: bool) -> Lists:
        async with self._looking:
            if not self._ended and (whole or self._is_due()):
                await self._look(whole)
                self._ended = whole
        if not self._lists:
            raise NotFound("there is nothing to watch of this job yet")
        return self._lists

    def _is_due(self) -> bool:
        return self._looked_at is None or self._mono() >= self._looked_at + LOOK_SECONDS

    async def _look(self, whole: bool) -> None:
        now, before = self._mono(), self._looked_at
        if before is None or now > before + MAX_PAUSE:
            # What was kept anew is told only to those who look often.
            self._recording = RecordedFacts(self._views, self._job_id)
        self._looked_at = None  # should this look fail, the next one reads everything
        news = await self._recording.look()
        self._recorded = news or self._recorded
        if self._recorded is not None and (news is not None or whole):
            rows = self._recording.rows
            self._lists = await asyncio.to_thread(_lists_of_preview, self._recorded, rows, self._job_id, whole)
        self._looked_at = now


class RecentValues(Generic[K, V]):
    """The values that were asked for last. Many who want the same one at once wait for one who makes it."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._known: OrderedDict[K, V] = OrderedDict()
        self._making: dict[K, asyncio.Task[V]] = {}

    async def get(self, key: K, make: Callable[[K], Awaitable[V]]) -> V:
        if key in self._known:
            self._known.move_to_end(key)
            return self._known[key]
        if key not in self._making:
            making = self._making[key] = asyncio.create_task(self._made(key, make))
            making.add_done_callback(lambda task: task.cancelled() or task.exception())  # should nobody wait any more
        # Shielded: one viewer who leaves must not take it from the others.
        return await asyncio.shield(self._making[key])

    async def _made(self, key: K, make: Callable[[K], Awaitable[V]]) -> V:
        try:
            found = await make(key)
            self._known[key] = found
            if len(self._known) > self._most:
                self._known.popitem(last=False)
            return found
        finally:
            del self._making[key]


def _lists_of_version(plan: TranscodePlan, files: list[StoredArtifact], number: int) -> Lists:
    there = {one.kept.name.partition("/")[0] for one in files if one.kept.name.endswith(".m4s")}
    recorded = collect(plan, files, [rung.name for rung in plan.rungs if rung.name not in there])
    return _texts(recorded.film, recorded, files, f"v{number}")


def _lists_of_preview(recorded: RecordedRows, rows: list[StoredArtifact], job_id: int, whole: bool) -> Lists:
    shown = recorded.film if whole else recorded.film.preview()
    if not whole and not shown.prefix:
        return {}
    return _texts(shown, recorded, rows, f"preview/{job_id}")


def _texts(film: Film, recorded: RecordedRows, rows: Iterable[StoredArtifact], folder: str) -> Lists:
    """Every list of the film, as it lies in this folder of the video's; its master also as seen from the video's."""
    by_key = {one.kept.key: one for one in rows}
    to_pieces = "../" * (folder.count("/") + 2) + PIECES

    def uri(kind: Kind, rung: str, number: int) -> str:
        if kind in LISTS:
            return f"{quote(rung, safe='')}/{LISTS[kind]}"
        one = by_key[recorded.kept[rung, INIT if kind == "init" else number].key]
        return f"{to_pieces}/{one.id}-{one.kept.token}{PurePosixPath(one.kept.name).suffix}"

    def from_above(kind: Kind, rung: str, number: int) -> str:
        return f"{folder}/{uri(kind, rung, number)}"

    texts = {f"{one.name}/{LISTS['media']}": playlists.media(film, one.name, uri) for one in film.renditions}
    texts |= {f"{one.name}/{LISTS['iframes']}": playlists.iframes(film, one.name, uri) for one in film.videos}
    texts[MASTER] = playlists.master(film, uri)
    lists = {f"{folder}/{name}": text.encode() for name, text in texts.items()}
    return {**lists, MASTER: playlists.master(film, from_above).encode()}
