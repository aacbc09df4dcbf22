"""Look at jobs, and stop or repeat them."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from telecine.cli import format
from telecine.cli.common import AsJson, Database, JobNumber, perform, session
from telecine.cli.parse import moment_of, subject_of
from telecine.errors import BadSpec
from telecine.plural import counted

if TYPE_CHECKING:
    from rich.text import Text

    from telecine.engine.queries.view_models import JobLine, Page
    from telecine.facts import Instant

Status = Annotated[str | None, typer.Option(help="One of the nine, or `open`: not ended yet.")]
ByFlow = Annotated[str | None, typer.Option("--flow", help="Only jobs of this flow.")]
ByOwner = Annotated[str | None, typer.Option("--owner", help="Only jobs of this owner.")]
BySubject = Annotated[str | None, typer.Option("--subject", metavar="KIND/ID", help="Only jobs about this.")]
Since = Annotated[
    str | None, typer.Option(metavar="WHEN", help="Submitted from then on: -2h, or a date and time in UTC.")
]
Until = Annotated[str | None, typer.Option(metavar="WHEN", help="Submitted before then.")]
Limit = Annotated[int, typer.Option(min=1, max=500, help="At most so many.")]
Cursor = Annotated[str | None, typer.Option(help="Where the last page ended, as it was printed.")]
Reason = Annotated[str, typer.Option(help="Why; shown with the job.")]
Generation = Annotated[
    int | None, typer.Option(min=1, help="The generation that failed: a repeat opens no second one after it.")
]
Priority = Annotated[
    str | None, typer.Option(help="0 to 10, or critical, high, normal, low, background; higher goes first.")
]
RunAt = Annotated[
    str | None, typer.Option("--run-at", metavar="WHEN", help="Earliest start: +10m, or a date and time in UTC.")
]
Version = Annotated[int | None, typer.Option(min=1, help="Only if nobody has edited it since this version.")]

PAST = "-2h"  # how long ago is written


def jobs(
    *,
    status: Status = None,
    flow: ByFlow = None,
    owner: ByOwner = None,
    subject: BySubject = None,
    since: Since = None,
    until: Until = None,
    limit: Limit = 20,
    cursor: Cursor = None,
    database: Database = None,
    as_json: AsJson = False,
) -> None:
    """List jobs, newest first."""

    async def look() -> None:
        async with session(database) as client:
            now = await client.now()
            page = await client.jobs(
                status=status,
                flow=flow,
                owner=owner,
                subject=subject_of(subject),
                since=None if since is None else moment_of(since, now, PAST),
                until=None if until is None else moment_of(until, now, PAST),
                cursor=cursor,
                limit=limit,
            )
        if as_json:
            format.print_json({"jobs": [asdict(line) for line in page.items], "next": page.next})
        else:
            _print_page(page, now)

    perform(look())


def _print_page(page: Page[JobLine], now: Instant) -> None:
    if not page.items:
        print("No jobs.")
        return
    when = ["submitted (UTC)"] if format.is_wide() else []
    table = format.table("job", "flow", "status", "progress", *when, "age", "took", "about", right=["job"])
    format.print_rows(table, [_row(line, now) for line in page.items], [_below(line) for line in page.items])
    if page.next:
        format.console().print(format.dim(f"More: --cursor {page.next}"))


def _row(line: JobLine, now: Instant) -> list[str | Text]:
    when = [format.utc(line.created_at)] if format.is_wide() else []
    age = format.span(now - line.created_at, most=1)
    took = "" if line.started_at is None else format.span((line.ended_at or now) - line.started_at)
    progress = format.bar(line.progress, width=10, style=format.TONES[line.status])
    return [str(line.id), line.flow, format.state(line.status), progress, *when, age, took, _about(line)]


def _about(line: JobLine) -> str:
    parts = ["/".join(line.subject or ())]
    if line.error and format.is_roomy():
        parts.append(format.short(_fault(line), 60))
    elif line.warning_count and not line.error:
        parts.append(counted(line.warning_count, "warning"))
    return "  ".join(part for part in parts if part)


def _below(line: JobLine) -> Text | None:
    """The error, where there is no room for it beside the rest; not that a cancelled job was cancelled."""
    from rich.text import Text

    if not line.error or format.is_roomy() or _fault(line) == line.status:
        return None
    return Text(_fault(line), style=format.TONES[line.status])


def _fault(line: JobLine) -> str:
    error = line.error or {}
    return format.fault(error.get("code"), error.get("message"))


def job(job_id: JobNumber, database: Database = None, as_json: AsJson = False) -> None:
    """Show one job: stages, error, files, and why it waits."""

    async def look() -> None:
        from telecine.cli.commands.job_page import reasons_of, render

        async with session(database) as client:
            view = await client.job(job_id)
            waits = await reasons_of(client, view)
            worked = await client.views.worked(job_id)
            now = await client.now()
        if as_json:
            waiting = [{"stage": stage, **asdict(reason)} for stage, reason in waits.items()]
            format.print_json({**asdict(view), "waiting": waiting})
        else:
            format.console().print(render(view, waits, now, worked))

    perform(look())


def cancel(job_id: JobNumber, reason: Reason = "cancelled", database: Database = None, as_json: AsJson = False) -> None:
    """Cancel a job: what waits ends now, what runs is told to stop."""

    async def ask() -> None:
        async with session(database) as client:
            status = await client.cancel(job_id, reason=reason)
        if as_json:
            format.print_json({"job_id": job_id, "status": status})
        elif status == "cancelled":
            print(f"Job {job_id} is cancelled.")
        else:
            print(f"Job {job_id} is {status.replace('_', ' ')}; what runs was told to stop.")

    perform(ask())


def retry(job_id: JobNumber, generation: Generation = None, database: Database = None, as_json: AsJson = False) -> None:
    """Open a failed or cancelled job again; what was done stays done."""

    async def ask() -> None:
        async with session(database) as client:
            await client.retry(job_id, generation=generation)
            view = await client.job(job_id)
        if as_json:
            format.print_json({"job_id": job_id, "status": view.status, "generation": view.generation})
        else:
            print(f"Job {job_id} runs again (generation {view.generation}).")

    perform(ask())


def edit(
    job_id: JobNumber,
    *,
    priority: Priority = None,
    run_at: RunAt = None,
    version: Version = None,
    database: Database = None,
    as_json: AsJson = False,
) -> None:
    """Change the priority or the earliest start of a job that has not ended."""
    if priority is None and run_at is None:
        raise BadSpec("say what to change: --priority, --run-at, or both")

    async def ask() -> None:
        async with session(database) as client:
            when = None if run_at is None else moment_of(run_at, await client.now())
            await client.edit(job_id, version=version, priority=priority, run_at=when)
            view = await client.job(job_id)
        changed = {"priority": view.priority, "run_at": view.run_at, "version": view.version}
        if as_json:
            format.print_json({"job_id": job_id, "status": view.status, **changed})
        else:
            begins = "" if view.run_at is None else f", begins not before {format.utc(view.run_at)} UTC"
            print(f"Job {job_id} has priority {view.priority}{begins}.")

    perform(ask())
