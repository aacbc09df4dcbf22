"""What has happened, in the order in which it became true."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from telecine.cli import format
from telecine.cli.common import AsJson, Database, perform, session

if TYPE_CHECKING:
    from telecine.client import Client
    from telecine.engine.events.stream import Event, Reset

After = Annotated[int, typer.Option(min=0, metavar="SEQ", help="Begin after the event with this number.")]
OfJob = Annotated[int | None, typer.Option("--job", metavar="ID", help="Only events of this job.", show_default=False)]
Follow = Annotated[bool, typer.Option("--follow", "-f", help="Stay and print what comes.")]


def events(
    after: After = 0, job: OfJob = None, follow: Follow = False, database: Database = None, as_json: AsJson = False
) -> None:
    """Print events in their order; the number of the last one is where to go on."""

    async def look() -> None:
        async with session(database) as client:
            if job is not None:
                await client.job(job)  # says so if there is none: silence would look like a job without events
            await print_events(client, after, job=job, follow=follow, as_json=as_json)

    perform(look())


async def print_events(
    client: Client, after: int | None, *, job: int | None = None, follow: bool, as_json: bool
) -> None:
    from telecine.engine.events.stream import Reset

    async for item in client.events(after, job_id=job, follow=follow):
        if as_json:
            format.print_line({"reset": item.seq} if isinstance(item, Reset) else asdict(item))
        else:
            print(_line(item), flush=True)


def _line(item: Event | Reset) -> str:
    from telecine.engine.events.stream import Reset

    if isinstance(item, Reset):
        return f"Older events are gone; on after {item.seq}."
    parts = [
        f"{item.seq:>6}  {format.utc(item.at)}  {item.kind:<18}",
        f"job {item.job_id}" if item.job_id is not None else "",
        f"{item.stage or ''}{f'[{item.position}]' if item.position is not None else ''}",
        f"#{item.token}" if item.token is not None else "",
        f"worker {item.worker}" if item.worker is not None else "",
        format.short(format.compact(item.data), 120) if item.data else "",
    ]
    return "  ".join(part for part in parts if part).rstrip()
