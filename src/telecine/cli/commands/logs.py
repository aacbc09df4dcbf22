"""What handlers wrote while they worked."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from telecine.cli import format
from telecine.cli.common import AsJson, Database, JobNumber, perform, session
from telecine.facts import Status
from telecine.plural import counted

if TYPE_CHECKING:
    from telecine.client import Client
    from telecine.engine.queries.view_models import LogLine

LOOK_SECONDS = 0.5
TONES = {"debug": "bright_black", "warning": "yellow", "error": "red"}

FIGURES: dict[str, Callable[[Any], str]] = {
    "exit_code": lambda code: f"exit {code}",
    "wall_seconds": lambda seconds: f"{seconds:.1f} s",
    "cpu_seconds": lambda seconds: f"CPU {seconds:.1f} s",
    "max_rss_bytes": format.size,
}

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
                format.print_line(asdict(line)) if as_json else _print(line)
            last = lines[-1].id
        if ended:
            break
        await asyncio.sleep(LOOK_SECONDS)
    if not last:
        which = "" if level is None else f" of level {level} or above"
        print(f"Job {job_id} has no log lines{which}.", file=sys.stderr)


def _print(line: LogLine) -> None:
    from rich.text import Text

    place = f"{line.stage}[{line.position}]"
    text = Text.assemble((format.utc(line.at), "bright_black"), f"  {place}#{line.token}  ")
    text.append(f"{line.level:<7} ", style=TONES.get(line.level, ""))
    data = dict(line.data or {})
    tail = data.pop("tail", "") if line.kind == "step" else data.pop("traceback", "")
    if line.kind == "step":
        text.append(f"$ {command(line.message, data)}").append(figures(data), style="bright_black")
        if format.console().is_terminal:
            text.truncate(format.console().width, overflow="ellipsis")
    else:
        text.append(line.message)
    if data:
        text.append(f"  {format.compact(data)}", style="bright_black")
    if tail:
        text.append("\n" + "\n".join(f"    {row}" for row in str(tail).splitlines()), style="bright_black")
    format.console().print(text, soft_wrap=True)


def command(message: str, data: dict[str, Any]) -> str:
    """The command; of a media child, what it was ordered, in a few words. The order itself names every frame: `--json`
    has it. What is said here leaves `data`."""
    order = data.pop("order", None)
    if not isinstance(order, dict):
        return message
    try:
        told = ", ".join(_ordered(order))
    except (KeyError, TypeError):  # the order of a child that is not ours
        return message
    return f"media {order.get('op', '')}" + (f": {told}" if told else "")


def _ordered(order: dict[str, Any]) -> Iterator[str]:
    for one in order.get("wanted", ()):
        yield f"{one['rung']['name']} {_numbers(one['segments'])}".rstrip()
    for one in (*order.get("rungs", ()), *order.get("tracks", ())):
        yield str(one["name"])
    if "track" in order:
        yield str(order["track"]["name"])
    if "stills" in order:
        yield counted(len(order["stills"]), "still")


def _numbers(segments: Sequence[int]) -> str:
    """`3-5` for segments that follow one another, else how many there are."""
    if not segments:
        return ""
    first, last = min(segments), max(segments)
    if last - first + 1 != len(segments):
        return f"({counted(len(segments), 'segment')})"
    return f"(segment {first})" if first == last else f"(segments {first}-{last})"


def figures(data: dict[str, Any]) -> str:
    """How a step ended and what it used; each that is said leaves `data`."""
    told = []
    for name, shown in FIGURES.items():
        if (value := data.pop(name, None)) is not None:
            told.append(shown(value))
    return "  " + "  ".join(told) if told else ""
