"""Follow jobs: bars on a terminal, lines in a pipe, one JSON object per change with --json."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from telecine.cli import format
from telecine.cli.common import JOB_FAILED, OK, AsJson, Database, perform, session
from telecine.facts import Status
from telecine.plural import counted

if TYPE_CHECKING:
    from rich.console import RenderableType

    from telecine.client import Client
    from telecine.engine.queries.fleet import Stats
    from telecine.engine.queries.view_models import JobLine, JobView, Waiting
    from telecine.facts import Instant

MAX_JOBS = 30
LOOK_SECONDS = 0.5
SETTLE_SECONDS = 2.0
FRAMES = 8

Which = Annotated[
    int | None, typer.Argument(metavar="ID", help="The job's number; without it, all open jobs.", show_default=False)
]


def watch(job_id: Which = None, database: Database = None, as_json: AsJson = False) -> None:
    """Follow a job until it has ended (exit 5 if it did not complete), or all open jobs."""

    async def look() -> int:
        async with session(database) as client:
            if job_id is not None:
                return await follow(client, job_id, as_json=as_json)
            if format.is_terminal() and not as_json:
                await _follow_all(client)
            else:
                from telecine.cli.commands.events import print_events

                await print_events(client, None, follow=True, as_json=as_json)
        return OK

    perform(look())


async def follow(client: Client, job_id: int, *, as_json: bool) -> int:
    """Stay with one job until it has ended; the exit code says how."""
    if as_json:
        view = await _print_changes(client, job_id)
    elif format.is_terminal():
        view = await _draw(client, job_id)
    else:
        view = await _print_lines(client, job_id)
    return OK if view.status == Status.COMPLETED else JOB_FAILED


async def held_up(client: Client, view: JobView) -> dict[str, Waiting]:
    """By stage, why nothing of an open job runs; empty while something does."""
    from telecine.cli.commands.job_page import reasons_of

    if Status(view.status).is_final or any(stage.state == "running" for stage in view.stages):
        return {}
    return {
        name: one for name, one in (await reasons_of(client, view)).items() if one.reason not in ("needs", "stopping")
    }


def worker_for(flow: str) -> str:
    """The command that starts a worker for a flow. One of your own comes from a module that only you know."""
    from telecine.apps.installed import installed

    return "telecine worker" if installed().flow(flow) is not None else "telecine worker --flows MODULE"


async def held_words(client: Client, view: JobView, *, settled: bool) -> dict[str, str]:
    """By stage, what holds a job up; that nobody serves it only if it stays so: a worker may just be starting."""
    from telecine.cli.commands.job_page import start_of

    now = await client.now()
    return {
        stage: f"{stage} waits: {one.text}{start_of(one, now)}"
        + (f"; start one with `{worker_for(view.flow)}`" if one.reason == "no_worker" else "")
        for stage, one in (await held_up(client, view)).items()
        if settled or one.reason != "no_worker"
    }


async def views_of(client: Client, job_id: int) -> AsyncGenerator[tuple[JobView, bool]]:
    """Each state of a job, and once more, with True, when it has not changed for a while."""
    import asyncio

    changes = client.watch(job_id)
    view = await anext(changes)
    while True:
        yield view, False
        if Status(view.status).is_final:
            return
        coming = asyncio.ensure_future(anext(changes))
        try:
            if not (await asyncio.wait({coming}, timeout=SETTLE_SECONDS))[0]:
                yield view, True
            view = await coming
        finally:
            coming.cancel()
            await asyncio.wait({coming})  # what it was asking must be over before the database is closed


async def _print_changes(client: Client, job_id: int) -> JobView:
    last: dict[str, Any] = {}
    async for view in client.watch(job_id):
        held = await held_up(client, view)
        waiting = [{"stage": stage, **asdict(one)} for stage, one in held.items()]
        change = {**_brief(view), "waiting": waiting}
        if change != last:
            format.print_line(change)
        last = change
    return view


def _brief(view: JobView) -> dict[str, Any]:
    """What changes while a job runs."""
    stages = [
        {"name": s.name, "state": s.state, "progress": round(s.progress, 4), "total": s.total, "counts": s.counts}
        for s in view.stages
    ]
    progress = round(view.progress, 4)
    return {"job_id": view.id, "status": view.status, "progress": progress, "stages": stages, "error": view.error}


async def _print_lines(client: Client, job_id: int) -> JobView:
    """A line for every change of status or of a stage, and for every tenth of progress."""
    last, told = None, set[str]()
    async for view, settled in views_of(client, job_id):
        shape = (view.status, int(view.progress * 10), [stage.state for stage in view.stages])
        if shape != last:
            busy = [f"{s.name} {s.progress:.0%}" for s in view.stages if s.state == "running"]
            rest = f"  {', '.join(busy)}" if busy else ""
            print(
                f"{format.utc(await client.now())}  job {view.id}  {view.status}  {view.progress:.0%}{rest}", flush=True
            )
            told.clear()
        if shape != last or settled:
            held = await held_words(client, view, settled=settled)
            for stage in [stage for stage in held if stage not in told]:
                print(f"  {held[stage]}", flush=True)
            told |= held.keys()
        last = shape
    print(_ending(view))
    return view


def _ending(view: JobView) -> str:
    took = "" if view.started_at is None or view.ended_at is None else format.span(view.ended_at - view.started_at)
    if view.status == Status.COMPLETED:
        warned = f", with {counted(view.warning_count, 'warning')}" if view.warning_count else ""
        done = f"Job {view.id} completed{f' in {took}' if took else ''}{warned}."
        return f"{done}\n`telecine job {view.id}` shows its results." if view.results or view.outputs else done
    error = view.error or {}
    where = f" in {error['stage']}" if error.get("stage") else ""
    return f"Job {view.id} {format.fault(f'{view.status}{where}', error.get('message'))}"


async def _draw(client: Client, job_id: int) -> JobView:
    from rich.live import Live

    with Live(console=format.console(), refresh_per_second=FRAMES) as live:
        async for view, settled in views_of(client, job_id):
            held = await held_words(client, view, settled=settled)
            live.update(_picture(view, [*held.values()]))
    format.console().print(_ending(view), style=format.TONES.get(view.status, ""))
    return view


def _picture(view: JobView, held: Sequence[str] = ()) -> RenderableType:
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    head = Text.assemble((f"Job {view.id}", "bold"), f"  {view.flow}  ")
    head.append_text(format.state(view.status))
    bars = Table.grid(padding=(0, 2, 0, 0))
    for stage in view.stages:
        ended = stage.total - sum(stage.counts.get(state, 0) for state in ("new", "ready", "running"))
        count = f"{ended}/{stage.total}" if stage.total > 1 else ""
        bars.add_row(
            stage.title,
            format.bar(stage.progress, style=format.TONES[stage.state]),
            format.state(stage.state),
            format.dim(count),
        )
    bars.add_row(Text("all", style="bold"), format.bar(view.progress, style=format.TONES[view.status]), "", "")
    return Group(head, bars, *(Text(words, style="yellow") for words in held))


async def _follow_all(client: Client) -> None:
    """All open jobs, and the last ones that ended, until somebody presses Ctrl-C."""
    import asyncio

    from rich.live import Live

    with Live(console=format.console(), refresh_per_second=FRAMES) as live:
        while True:
            page = await client.jobs(status="open", limit=MAX_JOBS)
            stats = await client.views.stats()
            live.update(_open_jobs(page.items, _summary(stats), await client.now()))
            await asyncio.sleep(LOOK_SECONDS)


def _summary(stats: Stats) -> str:
    fleet = f"{counted(stats.workers, 'worker')}, {counted(stats.slots, 'slot')}"
    tasks = stats.tasks
    work = f"{tasks['running']} running, {tasks['ready']} ready, {tasks['parked']} later, {tasks['new']} behind others"
    return f"{fleet} · tasks: {work}"


def _open_jobs(lines: tuple[JobLine, ...], summary: str, now: Instant) -> RenderableType:
    from rich.console import Group

    table = format.table("job", "flow", "status", "progress", "submitted", right=["job"])
    for line in lines:
        progress = format.bar(line.progress, style=format.TONES[line.status])
        table.add_row(str(line.id), line.flow, format.state(line.status), progress, format.ago(line.created_at, now))
    return Group(table if lines else format.dim("No open jobs."), format.dim(summary))
