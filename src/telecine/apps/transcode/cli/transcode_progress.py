"""How a running transcode looks, and what is said when it has ended."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

from telecine.cli import format
from telecine.facts import SECOND, Status

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.live import Live

    from telecine.apps.transcode.videos.progress import Quality, TranscodeProgress
    from telecine.client import Client

FRAMES = 8
STEPS_AT_ONCE = 500


@dataclass(frozen=True, slots=True)
class TranscodeFile:
    """A file whose job is known."""

    name: str
    job_id: int
    video: str
    folder: Path | None
    how: str  # "submitted", "continued", "made before", …


class ProgressDisplay:
    """Bars on a terminal, lines in a pipe, one object per change with --json."""

    def __init__(self, files: Sequence[TranscodeFile], *, as_json: bool) -> None:
        self._files = files
        self._as_json = as_json
        self._live: Live | None = None
        self._last: dict[int, Any] = {}

    def __enter__(self) -> ProgressDisplay:
        if format.is_terminal() and not self._as_json:
            from rich.live import Live

            self._live = Live(console=format.console(), refresh_per_second=FRAMES)
            self._live.__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        if self._live is not None:
            self._live.__exit__(*error)

    def draw(self, states: Mapping[int, TranscodeProgress]) -> None:
        if self._live is not None:
            from rich.console import Group

            self._live.update(Group(*(picture(file, states[file.job_id]) for file in self._files)))
            return
        for file in self._files:
            self._line(file, states[file.job_id])

    def _line(self, file: TranscodeFile, state: TranscodeProgress) -> None:
        shape = (state.status, state.step, int(state.percent / 10))
        if self._last.get(file.job_id) == shape:
            return
        self._last[file.job_id] = shape
        if self._as_json:
            print(plain(state), file=sys.stderr, flush=True)
        else:
            rest = "" if state.eta is None else f"  about {format.span(state.eta)} left"
            print(f"{file.name}  {state.step or state.status}  {state.percent:.0f} %{rest}", flush=True)


def plain(state: TranscodeProgress) -> str:
    import json

    return json.dumps({**asdict(state), "length": None if state.length is None else float(state.length)})


def told(sentence: str, *, as_json: bool) -> None:
    print(sentence, file=sys.stderr if as_json else sys.stdout, flush=True)


def picture(file: TranscodeFile, state: TranscodeProgress) -> RenderableType:
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    # Each on one line however narrow the terminal: what breaks jumps while it is drawn anew.
    head = Text(no_wrap=True, overflow="ellipsis").append(file.name, style="bold").append(f"  job {state.job_id}  ")
    head.append_text(format.state(state.status))
    if file.how != "submitted":
        head.append(f"  {file.how}", style="dim")
    bars = Table.grid(padding=(0, 2, 0, 0))
    for one in state.qualities:
        if one.status != "skipped":
            count = f"{one.segments_completed}/{one.segments_total}"
            bar = format.bar(one.progress_percent / 100, style=_tone(one))
            bars.add_row(one.quality, format.dim(_size(one)), bar, format.dim(count))
    pace = [] if state.speed is None else [f"{state.speed:.2f}× as fast as it plays"]
    if state.eta is not None and state.percent > 1:
        pace.append(f"about {format.span(state.eta)} left")
    everything = format.bar(state.percent / 100, style=format.TONES[state.status])
    bars.add_row(Text("all", style="bold"), "", everything, "")
    for column in bars.columns:
        column.no_wrap, column.overflow = True, "ellipsis"
    tempo = [Text(", ".join(pace), style="bright_black", no_wrap=True, overflow="ellipsis")] if pace else []
    return Group(head, bars, *tempo)


def _tone(one: Quality) -> str:
    return {"completed": "green", "failed": "red", "in_progress": "blue"}.get(one.status, "bright_black")


def _size(one: Quality) -> str:
    return f"{one.width}×{one.height}" if one.width else ""


async def summary_of(
    client: Client, file: TranscodeFile, state: TranscodeProgress, master: str | None
) -> dict[str, Any]:
    """What came of it, in figures."""
    job, wall = await client.job(file.job_id), state.worked
    elapsed = 0 if job.started_at is None or job.ended_at is None else job.ended_at - job.started_at
    length = state.length or Fraction(0)
    return {
        "file": file.name,
        "job_id": file.job_id,
        "video": file.video,
        "status": state.status,
        "how": file.how,
        "error": state.error,
        "warnings": list(state.warnings),
        "master": master,
        "seconds": round(float(length), 3),
        "wall_seconds": round(wall / SECOND, 2),
        "elapsed_seconds": round(elapsed / SECOND, 2),  # with the time between a kill and the next run
        "cpu_seconds": round(await _cpu(client, file.job_id), 2),
        "speed": round(float(length) * SECOND / wall, 2) if wall else None,
        "qualities": [
            {**asdict(one), "bit_rate": round(8 * one.bytes / length) if length else None} for one in state.qualities
        ],
    }


async def _cpu(client: Client, job_id: int) -> float:
    """What the media children of all attempts have used."""
    total, after = 0.0, 0
    while steps := await client.views.logs(job_id, after=after, kind="step", limit=STEPS_AT_ONCE):
        total += sum((step.data or {}).get("cpu_seconds") or 0.0 for step in steps)
        after = steps[-1].id
    return total


def print_summary(summary: Mapping[str, Any]) -> None:
    out = format.console()
    if summary["status"] != Status.COMPLETED:
        error = summary["error"] or {}
        where = f" in {error['stage']}" if error.get("stage") else ""
        fault = format.fault(f"{summary['status']}{where}", error.get("message"))
        out.print(f"{summary['file']}: {fault}", style="red")
        return
    table = format.table(
        "quality", "size", "segments", "bytes", "bit rate", "", right=["segments", "bytes", "bit rate"]
    )
    left_out = [one for one in summary["qualities"] if one["status"] == "skipped"]
    for one in summary["qualities"]:
        if one in left_out:
            continue
        rate = f"{one['bit_rate'] / 1000:,.0f} kbit/s" if one["bytes"] else "taken over"
        size = f"{one['width']}×{one['height']}" if one["width"] else ""
        failed = one["error_message"] if one["status"] == "failed" else ""
        table.add_row(one["quality"], size, str(one["segments_completed"]), format.size(one["bytes"]), rate, failed)
    out.print()
    out.print(table)
    if left_out:
        names = ", ".join(one["quality"] for one in left_out)
        out.print(format.dim(f"Left out: {names}; {left_out[0]['reason']}."))
    out.print()
    out.print(_figures(summary))
    for warning in summary["warnings"]:
        out.print(f"Warning: {warning}", style="yellow")
    out.print(summary["master"], style="bold", soft_wrap=True)
    out.print(
        f"Watch it: mpv {shlex.quote(summary['master'])}  (or VLC, ffplay, Safari, any HLS player)",
        style="dim",
        soft_wrap=True,
    )


def _figures(summary: Mapping[str, Any]) -> str:
    if summary["how"] == "made before":
        return f"{summary['file']} was made before; --again makes it anew."
    film = format.span(round(summary["seconds"] * SECOND))
    elapsed, worked = (round(summary[name] * SECOND) for name in ("elapsed_seconds", "wall_seconds"))
    took = format.span(worked)
    if format.has_paused(elapsed, worked):
        took += f" of work ({format.span(elapsed)} from start to end)"
    speed = "" if summary["speed"] is None else f", {summary['speed']:.2f}× as fast as it plays"
    return f"{film} of film in {took}{speed}, {summary['cpu_seconds']:.1f} s of CPU."
