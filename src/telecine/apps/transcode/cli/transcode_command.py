"""Transcode files here and now: an embedded worker, bars, a table, and the way to the result."""

from __future__ import annotations

import logging
import signal
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from telecine.cli import format
from telecine.cli.common import INTERRUPTED, JOB_FAILED, OK, AsJson, Database, perform, settings_for
from telecine.facts import Status

if TYPE_CHECKING:
    import asyncio

    from telecine.apps.transcode.cli.transcode_progress import TranscodeFile
    from telecine.apps.transcode.spec import TranscodeSpec
    from telecine.apps.transcode.videos.folder_export import FolderExport
    from telecine.apps.transcode.videos.progress import TranscodeProgress
    from telecine.client import Client
    from telecine.flow import Flow
    from telecine.wiring import Parts
    from telecine.worker import Worker

LOOK_SECONDS = 0.5

Files = Annotated[list[str], typer.Argument(metavar="FILE…", help="Paths, http(s):// or s3://", show_default=False)]
Folder = Annotated[
    str | None,
    typer.Option("--output", "-o", metavar="DIR", help="Write the stream there; it plays while it grows."),
]
LadderName = Annotated[
    str | None, typer.Option(metavar="NAME", help="web-compact, web, apple, single, or one of the settings.")
]
Preset = Annotated[str | None, typer.Option(metavar="NAME", help="x264's preset, veryfast unless set otherwise.")]
Qualities = Annotated[
    str | None, typer.Option(metavar="A,B", help="Only these rungs; others of a published version stay.")
]
Slots = Annotated[int | None, typer.Option("--workers", min=1, help="Tasks at once, if not one per core.")]
Seconds = Annotated[float | None, typer.Option("--segment", metavar="SECONDS", help="Length of a segment.")]
Damaged = Annotated[
    Literal["fail", "warn"] | None, typer.Option(help="What a damaged source leads to, if not as the settings say.")
]
Again = Annotated[bool, typer.Option("--again", help="Make it anew even if it was made before.")]


def transcode(
    files: Files,
    *,
    output: Folder = None,
    ladder: LadderName = None,
    preset: Preset = None,
    qualities: Qualities = None,
    workers: Slots = None,
    segment: Seconds = None,
    damaged: Damaged = None,
    again: Again = False,
    database: Database = None,
    as_json: AsJson = False,
) -> None:
    """Turn films into adaptive streams, on this machine. Run it again after Ctrl-C or a crash: it goes on."""
    from telecine.apps.transcode.cli.output_folders import check_folders, folder_for
    from telecine.apps.transcode.spec import parse
    from telecine.apps.transcode.videos.source_policy import check_source, check_wishes

    wishes = {
        "ladder": ladder,
        "preset": preset,
        "qualities": qualities.split(",") if qualities else None,
        "segment_seconds": segment,
        "damaged": damaged,
    }
    specs = [
        parse({"source": _address(file), **{name: value for name, value in wishes.items() if value is not None}})
        for file in files
    ]
    settings = settings_for(database, {"slots": workers}).settings
    folders = [folder_for(output, spec, len(specs)) for spec in specs]
    for spec in specs:
        check_wishes(spec, settings.ladders, settings.ladder)
        check_source(spec.source, settings.allow_private_sources)
    check_folders(files, folders)

    # What becomes of each attempt is on the screen; the worker's own log would say it twice.
    logging.getLogger("telecine").addHandler(logging.NullHandler())

    async def work() -> int:
        from telecine.client import Client
        from telecine.wiring import housekeeping, make_worker, open_engine
        from telecine.wiring.apps import machine_labels

        async with open_engine(settings) as parts:
            flows = await _registered_flows(parts)
            client = Client(parts)
            begun = [
                await _begin(parts, spec, folder, again=again) for spec, folder in zip(specs, folders, strict=True)
            ]
            worker = make_worker(parts, flows, await machine_labels(parts.world))
            following = Following(parts, client, begun, as_json=as_json)
            async with housekeeping(parts), _working(worker) as stopped:
                if (code := await _unless(stopped, following)) is not None:
                    return code
            return await following.interrupted()  # what ran has ended or was given back: now it is known

    perform(work(), swift=True)


async def _registered_flows(parts: Parts) -> list[Flow]:
    from telecine.apps.transcode.names import NAME
    from telecine.wiring import installed_flows

    flows = [flow for flow in installed_flows(parts.settings) if flow.name == NAME]
    for flow in flows:
        await parts.engine.jobs.register(flow)
    return flows


def _address(file: str) -> str:
    return file if "://" in file else str(Path(file).absolute())


@asynccontextmanager
async def _working(worker: Worker) -> AsyncIterator[asyncio.Event]:
    """A worker beside us; the event says that somebody wants us to stop. What it holds is given back at once."""
    import asyncio

    stopped = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stopped.set)
    running = asyncio.create_task(worker.run(), name="worker")
    running.add_done_callback(lambda _: stopped.set())
    try:
        yield stopped
    finally:
        worker.stop()
        worker.stop()
        await running


async def _begin(parts: Parts, spec: TranscodeSpec, folder: Path | None, *, again: bool) -> TranscodeFile:
    """The job for this file and these wishes: the one that there is already, or a new one."""
    from telecine.apps.transcode.cli.output_folders import check_film
    from telecine.apps.transcode.cli.transcode_progress import TranscodeFile
    from telecine.apps.transcode.videos.start import start_video

    name = spec.source.rsplit("/", 1)[-1]
    begun = await start_video(parts.engine, spec, again=again, told=_hashing(name))
    check_film(folder, begun.video)
    return TranscodeFile(name, begun.job_id, begun.video, folder, begun.how)


def _hashing(name: str) -> Any:
    if not format.is_terminal():
        return None
    return lambda done, of: format.console().print(f"Reading {name}: {done / of:.0%}", style="dim", end="\r")


async def _unless(stopped: asyncio.Event, following: Following) -> int | None:
    """How the work ends; None if we shall stop before, whatever it is at: also while a folder is being finished."""
    import asyncio

    running, stopping = asyncio.create_task(following.run()), asyncio.create_task(stopped.wait())
    await asyncio.wait({running, stopping}, return_when=asyncio.FIRST_COMPLETED)
    stopping.cancel()
    if running.done():
        return await running
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    return None


class Following:
    """Jobs until they have ended, and what came of them."""

    def __init__(self, parts: Parts, client: Client, files: list[TranscodeFile], *, as_json: bool) -> None:
        self._parts, self._client, self._files, self._as_json = parts, client, files, as_json
        self._masters: dict[int, str] = {}  # by job; with a folder, once all of it is written

    async def run(self) -> int:
        import asyncio

        from telecine.apps.transcode.cli.growing_folder import GrowingFolder
        from telecine.apps.transcode.cli.transcode_progress import ProgressDisplay

        previews = {
            one.job_id: GrowingFolder(one.name, self._showing(one, one.folder), self._parts.world)
            for one in self._files
            if one.folder is not None
        }
        with ProgressDisplay(self._files, as_json=self._as_json) as screen:
            while True:
                states = await self._states()
                screen.draw(states)
                if _have_ended(states):
                    break
                for preview in previews.values():
                    await preview.grow()
                await asyncio.sleep(LOOK_SECONDS)
        for job_id, state in states.items():
            if state.status == Status.COMPLETED and job_id in previews:
                self._masters[job_id] = str(await previews[job_id].showing.finish())
        return await self._sum_up(states)

    async def interrupted(self) -> int:
        """Say what is true when the worker has stopped: it may have done the last task meanwhile."""
        from telecine.apps.transcode.cli.transcode_progress import told

        states = await self._states()
        made = [one for one in self._files if states[one.job_id].status == Status.COMPLETED]
        unfinished = [str(one.folder) for one in made if one.folder is not None and one.job_id not in self._masters]
        if not _have_ended(states):
            told("Stopped. Nothing that was made is lost: run the same command to go on.", as_json=self._as_json)
        elif unfinished:
            where = ", ".join(unfinished)
            told(
                f"All is encoded, but not all of it is in {where} yet: run the same command to go on.",
                as_json=self._as_json,
            )
        else:
            return await self._sum_up(states)
        return INTERRUPTED

    async def _states(self) -> dict[int, TranscodeProgress]:
        from telecine.apps.transcode.videos.progress import progress_of

        return {one.job_id: await progress_of(self._client.views, one.job_id) for one in self._files}

    def _showing(self, one: TranscodeFile, folder: Path) -> FolderExport:
        from telecine.apps.transcode.videos.folder_export import FolderExport
        from telecine.wiring import open_artifacts

        return FolderExport(
            self._client.views, open_artifacts(self._parts.settings), one.job_id, folder, film=one.video
        )

    async def _sum_up(self, states: Mapping[int, TranscodeProgress]) -> int:
        from telecine.apps.transcode.cli.transcode_progress import print_summary, summary_of

        summaries = []
        for one in self._files:
            state = states[one.job_id]
            master = await self._master(one.job_id) if state.status == Status.COMPLETED else None
            summaries.append(await summary_of(self._client, one, state, master))
        if self._as_json:
            format.print_json(summaries[0] if len(summaries) == 1 else summaries)
        else:
            for summary in summaries:
                print_summary(summary)
        return OK if all(state.status == Status.COMPLETED for state in states.values()) else JOB_FAILED

    async def _master(self, job_id: int) -> str:
        """Where the master playlist is: in the folder that was asked for, or among the artifacts."""
        if job_id in self._masters:
            return self._masters[job_id]
        from telecine.apps.transcode.stages.package import MASTER
        from telecine.wiring import open_artifacts

        settings = self._parts.settings
        kept = next(one.kept for one in await self._client.views.kept(job_id, "package") if one.kept.name == MASTER)
        path = open_artifacts(settings).path(kept.key or "")
        return str(path) if path is not None else f"{settings.shown('artifacts_url')}/{kept.key}"


def _have_ended(states: Mapping[int, TranscodeProgress]) -> bool:
    return all(Status(state.status).is_final for state in states.values())
