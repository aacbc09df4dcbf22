"""What handlers wrote while they worked."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from telecine.cli import show
from telecine.cli.common import AsJson, Database, JobNumber, perform, session
from telecine.facts import Status

if TYPE_CHECKING:
    from telecine.client import Client
    from telecine.engine.shown import LogLine

LOOK_SECONDS = 0.5
TONES = {"debug": "bright_black", "warning": "yellow", "error": "red"}

Follow = Annotated[bool, typer.Option("--follow", "-f", help="Stay and print new lines until the job has ended.")]
Level = Annotated[str | None, typer.Option(help="Only lines of this level and above: debug, info, warning, error.")]


def logs(
    job_id: JobNumber,
    follow: Follow = False,
    level: Level = None,
    database: Database = None,
    as_json: AsJson = False,
) -> None:
    """Print the log lines and steps of a job."""

    async def look() -> None:
        async with session(database) as client:
            await _print_all(client, job_id, level, follow=follow, as_json=as_json)

    perform(look())


async def _print_all(client: Client, job_id: int, level: str | None, *, follow: bool, as_json: bool) -> None:
    import asyncio

    last = 0
    while True:
        # Looked at before the lines: what an ended job wrote is all there.
        ended = not follow or Status((await client.job(job_id)).status).is_final
        while lines := await client.logs(job_id, after=last, level=level):
            for line in lines:
                show.print_line(asdict(line)) if as_json else _print(line)
            last = lines[-1].id
        if ended:
            return
        await asyncio.sleep(LOOK_SECONDS)


def _print(line: LogLine) -> None:
    from rich.text import Text

    place = f"{line.stage}[{line.position}]"
    text = Text.assemble((show.utc(line.at), "bright_black"), f"  {place}#{line.token}  ")
    text.append(f"{line.level:<7} ", style=TONES.get(line.level, ""))
    text.append("$ " if line.kind == "step" else "").append(line.message)
    data = dict(line.data or {})
    tail = data.pop("tail", "") if line.kind == "step" else data.pop("traceback", "")
    if data:
        text.append(f"  {show.compact(data)}", style="bright_black")
    if tail:
        text.append("\n" + "\n".join(f"    {row}" for row in str(tail).splitlines()), style="bright_black")
    show.console().print(text, soft_wrap=True)
