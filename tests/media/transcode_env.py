"""A whole Telecine for tests of the transcode flow: a database, a folder of artifacts, a worker, and films to show.

async def story(house: Theatre) -> None:
    job = await house.made(house.spec(film))
    folder = await house.exported(job.id)

play(story, tmp_path)
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import av

from telecine.apps.transcode.spec import TranscodeSpec, parse
from telecine.apps.transcode.videos.folder_export import FolderExport
from telecine.apps.transcode.videos.start import start_video
from telecine.client import Client
from telecine.engine.queries.view_models import JobView
from telecine.facts import Status, StoredArtifact
from telecine.flow import Bench, Flow
from telecine.media.hls.lint import check_folder
from telecine.media.hls.lint_text import parse as parse_list
from telecine.settings import Settings
from telecine.store.open import bring_up_to_date, open_store
from telecine.wiring import Parts, installed_flows, make_worker, open_artifacts, open_engine
from telecine.world import World
from tests.media.patterns import bursts, heard, read_number
from tests.media.readers import ffmpeg_complaints, packager_complaints
from tests.support.scene import execute

PATIENCE = 60.0
LADDER = [{"height": 90, "kbps": 80}, {"height": 180, "kbps": 200}]
# Cut small, so that a film of three seconds has several of everything; without pictures where a test is not about them.
SMALL: dict[str, Any] = {
    "ladder": LADDER, "segment_seconds": 1, "gop_seconds": 0.5, "chunk_segments": 2, "preset": "ultrafast",
    "poster": False, "sprites": False,
}  # fmt: skip


def small(source: Path | str, **wishes: Any) -> dict[str, Any]:
    return {"source": str(source), **SMALL, **wishes}


def settings_in(folder: Path, **given: Any) -> Settings:
    """Everything below one folder, and quicker to notice things than in production."""
    usual: dict[str, Any] = {
        "database_url": f"sqlite:///{folder}/telecine.db",
        "artifacts_url": str(folder / "artifacts"),
        "scratch": folder / "scratch",
        "sweep_seconds": 0.2,
        "poll_seconds": 0.1,
        "beat_seconds": 0.5,
        "slots": 2,
        "worker_name": "ann",
    }
    return Settings(**{**usual, **given})


@dataclass
class Theatre:
    """A database with an engine, and usually a worker on it."""

    parts: Parts
    folder: Path

    @property
    def client(self) -> Client:
        return Client(self.parts)

    @property
    def views(self) -> Any:
        return self.parts.engine.queries

    # -- jobs ---------------------------------------------------------------------------------------------------------

    async def begun(self, wishes: dict[str, Any], **how: Any) -> int:
        """Submit; the job's id."""
        return (await start_video(self.parts.engine, spec_of(wishes), **how)).job_id

    async def made(self, wishes: dict[str, Any], **how: Any) -> JobView:
        """Submit and wait: the job as it ended."""
        return await self.ended(await self.begun(wishes, **how))

    async def ended(self, job_id: int) -> JobView:
        async def final() -> JobView | None:
            job: JobView = await self.views.job(job_id)
            return job if Status(job.status).is_final else None

        found: JobView = await until(final, f"job {job_id} has ended", every=0.1)
        return found

    async def completed(self, wishes: dict[str, Any], **how: Any) -> JobView:
        job = await self.made(wishes, **how)
        assert job.status == "completed", job.error
        return job

    async def hurry(self) -> None:
        """Let no task wait for its next attempt."""
        await self.sql("update task set ready_at = 0 where state = 'ready' and parked")

    # -- what came of them --------------------------------------------------------------------------------------------

    async def exported(self, job_id: int, name: str = "out") -> Path:
        return (await self.showing(job_id, name).finish()).parent

    def showing(self, job_id: int, name: str = "out") -> FolderExport:
        return FolderExport(self.views, open_artifacts(self.parts.settings), job_id, self.folder / name)

    async def pieces(self, job_id: int) -> dict[tuple[str, int], StoredArtifact]:
        """What was recorded of each rung and track, by segment."""
        found = [one for one in await self.views.kept(job_id, "audio", "video") if one.kept.name.endswith(".m4s")]
        by_place = {(one.kept.facts["rung"], one.kept.facts["number"]): one for one in found}
        assert len(by_place) == len(found), "a segment was recorded twice"
        return by_place

    async def attempts(self, job_id: int) -> list[tuple[str, str]]:
        """Stage and outcome of every attempt."""
        page = await self.views.attempts(job_id, limit=500)
        return [(one.stage, one.outcome) for one in page.items]

    async def sql(self, text: str) -> list[dict[str, Any]]:
        return await execute(self.parts.store, text)


def spec_of(wishes: dict[str, Any]) -> TranscodeSpec:
    return parse(wishes)


Story = Callable[[Theatre], Awaitable[None]]


def play(
    story: Story, folder: Path, *, flows: Iterable[Flow] | None = None, working: bool = True, **given: Any
) -> None:
    """Run a story in a theatre of its own."""

    async def evening() -> None:
        async with theatre(folder, flows=flows, working=working, **given) as house:
            await story(house)

    asyncio.run(evening())


@asynccontextmanager
async def theatre(
    folder: Path, *, flows: Iterable[Flow] | None = None, working: bool = True, **given: Any
) -> AsyncIterator[Theatre]:
    folder.mkdir(exist_ok=True)
    settings = settings_in(folder, **given)
    await migrated(settings)
    async with open_engine(settings) as parts:
        served = list(installed_flows(settings) if flows is None else flows)
        for flow in served:
            await parts.engine.jobs.register(flow)
        house = Theatre(parts, folder)
        if not working:
            yield house
            return
        worker = make_worker(parts, served)
        running = asyncio.create_task(worker.run())
        try:
            yield house
        finally:
            worker.stop()
            worker.stop()
            await running


async def migrated(settings: Settings) -> None:
    """PostgreSQL, which others share, is never migrated in passing."""
    store = open_store(settings.database_url, dice=World().dice)
    try:
        await bring_up_to_date(store, settings.database_url)
    finally:
        await store.close()


def hooked(settings: Settings, stage: str, *, before: Callable[[Bench], Awaitable[None]]) -> list[Flow]:
    """The real flow, with something that happens just before one of its stages begins."""
    [flow] = installed_flows(settings)
    real = flow.handlers[stage]

    async def handler(bench: Bench) -> Any:
        await before(bench)
        return await real(bench)  # type: ignore[misc]

    flow.handlers[stage] = handler
    return [flow]


async def until(
    check: Callable[[], Awaitable[Any]], what: str, *, within: float = PATIENCE, every: float = 0.03
) -> Any:
    """Wait until the check answers something; what it answered."""
    deadline = time.monotonic() + within
    while not (found := await check()):
        assert time.monotonic() < deadline, f"waited {within} s in vain until {what}"
        await asyncio.sleep(every)
    return found


# -- what is in a folder -----------------------------------------------------------------------------------------------


def faults_of(folder: Path, scratch: Path) -> list[Any]:
    """Whatever anybody has to say against an exported film: our linter, FFmpeg, Shaka Packager."""
    scratch.mkdir(exist_ok=True)
    return [*check_folder(folder), *ffmpeg_complaints(folder), *packager_complaints(folder, scratch)]


def joined(folder: Path, playlist: str) -> bytes:
    """A rendition as one file: its init and all segments that its list names."""
    listed = parse_list(playlist, (folder / playlist).read_text())
    parts = [(folder / str(listed.map)).read_bytes(), *((folder / one.uri).read_bytes() for one in listed.entries)]
    return b"".join(parts)


def renditions(folder: Path) -> dict[str, str]:
    """The media playlists by the name of their folder."""
    return {path.parent.name: str(path.relative_to(folder)) for path in sorted(folder.glob("*/*/index.m3u8"))}


def numbers_in(data: bytes) -> list[int]:
    """The numbers that are painted into the frames, in the order in which they are shown."""
    with _opened(data) as container:
        return [read_number(frame) for frame in container.decode(video=0)]


def seconds_in(data: bytes) -> dict[int, float]:
    """Which second of the film is heard when."""
    with _opened(data) as container:
        return bursts(heard(container.decode(audio=0)), 48_000)


def _opened(data: bytes) -> Any:
    import io

    return av.open(io.BytesIO(data), "r", format="mp4")


def numbers_of(folder: Path) -> dict[str, list[int]]:
    """Of each video rendition, the numbers of its frames."""
    return {
        name: numbers_in(joined(folder, playlist))
        for name, playlist in renditions(folder).items()
        if playlist.startswith("video/")
    }
