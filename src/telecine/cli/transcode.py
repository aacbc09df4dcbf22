"""Transcode files here and now: an embedded worker, bars, a table, and the way to the result."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from telecine.cli import show
from telecine.cli.common import INTERRUPTED, JOB_FAILED, OK, AsJson, Database, perform, settings_for
from telecine.facts import Status

if TYPE_CHECKING:
    from telecine.cli.transcoding import File
    from telecine.client import Client
    from telecine.flows.transcode.spec import TranscodeSpec
    from telecine.wiring import Parts
    from telecine.worker import Worker

LOOK_SECONDS = 0.5
SHOW_SECONDS = 2.0

Files = Annotated[list[str], typer.Argument(metavar="FILE…", help="Paths, http(s):// or s3://", show_default=False)]
Folder = Annotated[
    Path | None,
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
    again: Again = False,
    database: Database = None,
    as_json: AsJson = False,
) -> None:
    """Turn films into adaptive streams, on this machine. Run it again after Ctrl-C or a crash: it goes on."""
    from telecine.flows.transcode.spec import parse
    from telecine.media.ladder_spec import read_ladder

    wishes = {
        "ladder": ladder,
        "preset": preset,
        "qualities": qualities.split(",") if qualities else None,
        "segment_seconds": segment,
    }
    specs = [
        parse({"source": _address(file), **{name: value for name, value in wishes.items() if value is not None}})
        for file in files
    ]
    settings = settings_for(database, {"slots": workers}).settings
    folders = [_folder(output, spec, len(specs)) for spec in specs]
    read_ladder(ladder or settings.ladder, settings.ladders)
    _check_places(folders)

    async def work() -> int:
        from telecine.client import Client
        from telecine.wiring import built_in_flows, hardware_labels, housekeeping, make_worker, open_engine

        async with open_engine(settings) as parts:
            flows = built_in_flows(settings)
            for flow in flows:
                await parts.engine.register(flow)
            client = Client(parts)
            begun = [
                await _begin(parts, spec, folder, again=again) for spec, folder in zip(specs, folders, strict=True)
            ]
            worker = make_worker(parts, flows, await hardware_labels(parts))
            async with housekeeping(parts), _working(worker) as stopped:
                return await _follow(parts, client, begun, stopped, as_json=as_json)

    perform(work(), swift=True)


def _address(file: str) -> str:
    return file if "://" in file else str(Path(file).absolute())


def _folder(output: Path | None, spec: TranscodeSpec, count: int) -> Path | None:
    """One file goes into the folder itself, several each into one of their own."""
    if output is None or count == 1:
        return output
    return output / Path(spec.source).stem


def _check_places(folders: Sequence[Path | None]) -> None:
    """Refuse a folder that is not ours to write into before anything is made for it."""
    from telecine.media.export import Export

    for folder in folders:
        if folder is not None and folder.exists():
            with Export(folder, ""):
                pass


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
    from telecine.cli.transcoding import File
    from telecine.videos.beginning import begin

    name = spec.source.rsplit("/", 1)[-1]
    begun = await begin(parts.engine, spec, again=again, told=_hashing(name))
    return File(name, begun.job_id, begun.video, folder, begun.how)


def _hashing(name: str) -> Any:
    if not show.is_terminal():
        return None
    return lambda done, of: show.console().print(f"[dim]Reading {name}: {done / of:.0%}[/]", end="\r")


async def _follow(parts: Parts, client: Client, begun: list[File], stopped: asyncio.Event, *, as_json: bool) -> int:
    from telecine.cli.transcoding import Screen, told

    with Screen(begun, as_json=as_json) as screen:
        shown = dict.fromkeys((one.job_id for one in begun if one.folder), 0.0)
        while True:
            states = {one.job_id: await _state(client, one.job_id) for one in begun}
            screen.draw(states)
            for one in begun:
                await _grow(parts, client, one, shown)
            if stopped.is_set() or all(Status(state.status).is_final for state in states.values()):
                break
            await _pause(stopped)
    if not all(Status(state.status).is_final for state in states.values()):
        told("Stopped. Nothing that was made is lost: run the same command to go on.", as_json=as_json)
        return INTERRUPTED
    return await _sum_up(parts, client, begun, states, as_json=as_json)


async def _state(client: Client, job_id: int) -> Any:
    from telecine.videos.view import progress_of

    return await progress_of(client.views, job_id)


async def _pause(stopped: asyncio.Event) -> None:
    try:
        async with asyncio.timeout(LOOK_SECONDS):
            await stopped.wait()
    except TimeoutError:
        return


async def _grow(parts: Parts, client: Client, one: File, shown: dict[int, float]) -> None:
    """Show what may be watched already, every few seconds."""
    now = parts.world.mono()
    if one.folder is None or now - shown[one.job_id] < SHOW_SECONDS:
        return
    shown[one.job_id] = now
    await _showing(parts, client, one).update()


def _showing(parts: Parts, client: Client, one: File) -> Any:
    from telecine.videos.showing import Showing
    from telecine.wiring import open_artifacts

    assert one.folder is not None
    return Showing(client.views, open_artifacts(parts.settings), one.job_id, one.folder)


async def _sum_up(parts: Parts, client: Client, begun: list[File], states: Any, *, as_json: bool) -> int:
    from telecine.cli.transcoding import print_summary, summary_of

    summaries = []
    for one in begun:
        state = states[one.job_id]
        master = None
        if state.status == Status.COMPLETED:
            master = await _master(parts, client, one)
        summaries.append(await summary_of(client, one, state, master))
    if as_json:
        show.print_json(summaries[0] if len(summaries) == 1 else summaries)
    else:
        for summary in summaries:
            print_summary(summary)
    return OK if all(state.status == Status.COMPLETED for state in states.values()) else JOB_FAILED


async def _master(parts: Parts, client: Client, one: File) -> str:
    """Where the master playlist is: in the folder that was asked for, or among the artifacts."""
    if one.folder is not None:
        return str(await _showing(parts, client, one).finish())
    from telecine.flows.transcode.packaging import MASTER
    from telecine.wiring import open_artifacts

    kept = next(one.kept for one in await client.views.kept(one.job_id, "package") if one.kept.name == MASTER)
    path = open_artifacts(parts.settings).path(kept.key or "")
    return str(path) if path is not None else f"{parts.settings.shown('artifacts_url')}/{kept.key}"
