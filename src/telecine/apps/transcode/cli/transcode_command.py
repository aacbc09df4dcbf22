"""Transcode files here and now: an embedded worker, bars, a table, and the way to the result."""

from __future__ import annotations

import asyncio
import logging
import signal
from collections.abc import AsyncIterator, Coroutine, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from tempfile import TemporaryFile
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from telecine.cli import format
from telecine.cli.common import INTERRUPTED, JOB_FAILED, OK, AsJson, Database, perform, settings_for
from telecine.errors import BadSpec
from telecine.facts import Status

if TYPE_CHECKING:
    from telecine.apps.transcode.cli.growing_folder import Preview
    from telecine.apps.transcode.cli.transcode_progress import File
    from telecine.apps.transcode.spec import TranscodeSpec
    from telecine.apps.transcode.videos.folder_export import Showing
    from telecine.client import Client
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
    folders = [_folder(output, spec, len(specs)) for spec in specs]
    for spec in specs:
        check_wishes(spec, settings.ladders, settings.ladder)
        check_source(spec.source, settings.allow_private_sources)
    _check_places(files, folders)

    # What becomes of each attempt is on the screen; the worker's own log would say it twice.
    logging.getLogger("telecine").addHandler(logging.NullHandler())

    async def work() -> int:
        from telecine.client import Client
        from telecine.wiring import built_in_flows, hardware_labels, housekeeping, make_worker, open_engine

        async with open_engine(settings) as parts:
            flows = built_in_flows(settings)
            for flow in flows:
                await parts.engine.jobs.register(flow)
            client = Client(parts)
            begun = [
                await _begin(parts, spec, folder, again=again) for spec, folder in zip(specs, folders, strict=True)
            ]
            worker = make_worker(parts, flows, await hardware_labels(parts))
            async with housekeeping(parts), _working(worker) as stopped:
                following = _follow(parts, client, begun, as_json=as_json)
                return await _unless(stopped, following, as_json=as_json)

    perform(work(), swift=True)


def _address(file: str) -> str:
    return file if "://" in file else str(Path(file).absolute())


def _folder(output: str | None, spec: TranscodeSpec, count: int) -> Path | None:
    """One file goes into the folder itself, several each into one of their own."""
    if output is None:
        return None
    if not output.strip():
        raise BadSpec("-o names no folder; `-o .` is the one that you are in")
    return Path(output) if count == 1 else Path(output, Path(spec.source).stem)


def _check_places(files: Sequence[str], folders: Sequence[Path | None]) -> None:
    """Refuse a folder that is not ours to write into, or two films for one, before anything is made for it."""
    from telecine.media.hls.export import Export

    taken: dict[Path, str] = {}
    for file, folder in zip(files, folders, strict=True):
        if folder is None:
            continue
        if other := taken.get(folder):
            raise BadSpec(f"{other} and {file} would both be written to {folder}: run one of them with another -o")
        taken[folder] = file
        if folder.exists():
            with Export(folder, ""):
                _try_to_write(folder)
        else:
            _try_to_make(folder)


def _try_to_write(folder: Path) -> None:
    try:
        TemporaryFile(dir=folder).close()
    except OSError as error:
        raise BadSpec(f"nothing can be written into {folder}: {error.strerror}") from error


def _try_to_make(folder: Path) -> None:
    """Make it and take it away again: rights alone do not tell, and a command that refuses leaves nothing behind."""
    whole = folder.absolute()
    parent = next(one for one in whole.parents if one.exists())
    lacking = [one for one in (whole, *whole.parents) if parent in one.parents]
    made: list[Path] = []
    try:
        for one in reversed(lacking):
            if not one.exists():  # `new/..` is there as soon as `new` is
                one.mkdir()
                made.append(one)
    except OSError as error:
        raise BadSpec(f"there can be no folder {folder}: {parent} lets none be made ({error.strerror})") from error
    finally:
        with suppress(OSError):  # somebody has put something into it meanwhile: then it is his
            for one in reversed(made):
                one.rmdir()


@asynccontextmanager
async def _working(worker: Worker) -> AsyncIterator[asyncio.Event]:
    """A worker beside us; the event says that somebody wants us to stop. What it holds is given back at once."""
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


async def _begin(parts: Parts, spec: TranscodeSpec, folder: Path | None, *, again: bool) -> File:
    """The job for this file and these wishes: the one that there is already, or a new one."""
    from telecine.apps.transcode.cli.transcode_progress import File
    from telecine.apps.transcode.videos.start import begin

    name = spec.source.rsplit("/", 1)[-1]
    begun = await begin(parts.engine, spec, again=again, told=_hashing(name))
    _check_film(folder, begun.video)
    return File(name, begun.job_id, begun.video, folder, begun.how)


def _check_film(folder: Path | None, video: str) -> None:
    """Refuse the folder of another film now, not when all is encoded."""
    from telecine.media.hls.export import Export

    if folder is not None and folder.exists():
        with Export(folder, "", video):
            pass


def _hashing(name: str) -> Any:
    if not format.is_terminal():
        return None
    return lambda done, of: format.console().print(f"Reading {name}: {done / of:.0%}", style="dim", end="\r")


async def _unless(stopped: asyncio.Event, work: Coroutine[Any, Any, int], *, as_json: bool) -> int:
    """How the work ends, unless we shall stop before: whatever it is at, also while a folder is being finished."""
    from telecine.apps.transcode.cli.transcode_progress import told

    following, stopping = asyncio.create_task(work), asyncio.create_task(stopped.wait())
    await asyncio.wait({following, stopping}, return_when=asyncio.FIRST_COMPLETED)
    stopping.cancel()
    if following.done():
        return await following
    following.cancel()
    await asyncio.gather(following, return_exceptions=True)
    told("Stopped. Nothing that was made is lost: run the same command to go on.", as_json=as_json)
    return INTERRUPTED


async def _follow(parts: Parts, client: Client, begun: list[File], *, as_json: bool) -> int:
    from telecine.apps.transcode.cli.growing_folder import Preview
    from telecine.apps.transcode.cli.transcode_progress import Screen

    previews = {
        one.job_id: Preview(one.name, _showing(parts, client, one, one.folder), parts.world)
        for one in begun
        if one.folder is not None
    }
    with Screen(begun, as_json=as_json) as screen:
        while True:
            states = {one.job_id: await _state(client, one.job_id) for one in begun}
            screen.draw(states)
            if all(Status(state.status).is_final for state in states.values()):
                break
            for preview in previews.values():
                await preview.grow()
            await asyncio.sleep(LOOK_SECONDS)
    masters = {
        job_id: await _master(parts, client, job_id, previews.get(job_id))
        for job_id, state in states.items()
        if state.status == Status.COMPLETED
    }
    return await _sum_up(client, begun, states, masters, as_json=as_json)


async def _state(client: Client, job_id: int) -> Any:
    from telecine.apps.transcode.videos.progress import progress_of

    return await progress_of(client.views, job_id)


def _showing(parts: Parts, client: Client, one: File, folder: Path) -> Showing:
    from telecine.apps.transcode.videos.folder_export import Showing
    from telecine.wiring import open_artifacts

    return Showing(client.views, open_artifacts(parts.settings), one.job_id, folder, film=one.video)


async def _master(parts: Parts, client: Client, job_id: int, preview: Preview | None) -> str:
    """Where the master playlist is: in the folder that was asked for, or among the artifacts."""
    if preview is not None:
        return str(await preview.showing.finish())
    from telecine.apps.transcode.stages.package import MASTER
    from telecine.wiring import open_artifacts

    kept = next(one.kept for one in await client.views.kept(job_id, "package") if one.kept.name == MASTER)
    path = open_artifacts(parts.settings).path(kept.key or "")
    return str(path) if path is not None else f"{parts.settings.shown('artifacts_url')}/{kept.key}"


async def _sum_up(client: Client, begun: list[File], states: Any, masters: dict[int, str], *, as_json: bool) -> int:
    from telecine.apps.transcode.cli.transcode_progress import print_summary, summary_of

    summaries = [await summary_of(client, one, states[one.job_id], masters.get(one.job_id)) for one in begun]
    if as_json:
        format.print_json(summaries[0] if len(summaries) == 1 else summaries)
    else:
        for summary in summaries:
            print_summary(summary)
    return OK if all(state.status == Status.COMPLETED for state in states.values()) else JOB_FAILED
