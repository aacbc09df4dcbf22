"""One video on one screen."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from telecine.apps.transcode.cli.tones import TONES
from telecine.cli import format
from telecine.facts import Instant

if TYPE_CHECKING:
    from telecine.apps.transcode.videos.progress import Quality, TranscodeProgress
    from telecine.apps.transcode.videos.video_view import VideoPage

STEP_TONES = {"completed": "green", "in_progress": "blue", "failed": "red"}
Place = Callable[[str], str]


def render(page: VideoPage, now: Instant, place: Place) -> RenderableType:
    parts: list[RenderableType] = [_head(page), _facts(page, place)]
    if page.progress is not None:
        parts += [Text(), _job(page), *_qualities(page.progress, now), *_error(page.progress)]
    parts += _versions(page, now)
    return Group(*parts)


def _head(page: VideoPage) -> Text:
    head = Text.assemble((page.id, "bold"), "  ")
    head.append_text(format.state(page.status, TONES))
    return head.append(f"  {page.beside}", style="yellow") if page.beside else head


def _facts(page: VideoPage, place: Place) -> Table:
    known = page.facts
    size = f"{known['width']}×{known['height']}" if known.get("width") else ""
    lines = {
        "length": format.span(known["duration_ms"]) if known.get("duration_ms") is not None else "",
        "picture": f"{size}, {known['rate']} frames/s" if size else "",
        "qualities": " ".join(known.get("qualities") or ()),
        "sound": " ".join(known.get("audio") or ()),
        "bytes": format.size(known.get("bytes")),
        "owner": page.owner,
        "master": "" if page.master is None else place(page.master),
        "poster": "" if page.poster is None else place(page.poster),
        "warnings": "; ".join(known.get("warnings") or ()),
    }
    table = Table.grid(padding=(0, 2, 0, 0))
    for name, value in lines.items():
        if value:
            table.add_row(format.dim(name), value)
    return table


def _job(page: VideoPage) -> Text:
    """The newest job: its claim and its steps."""
    assert page.progress is not None
    line = Text.assemble((f"Job {page.progress.job_id}", "bold"), "  ").append_text(format.state(page.progress.status))
    line.append(f"  {page.progress.percent:.0f} %, {page.claim}")
    if page.workers:
        line.append(f", by {', '.join(page.workers)}")
    for step in page.steps:
        line.append("  ").append(
            f"{step.name}: {step.status.replace('_', ' ')}", style=STEP_TONES.get(step.status, "dim")
        )
    return line


def _qualities(state: TranscodeProgress, now: Instant) -> list[RenderableType]:
    if not state.qualities:
        return []
    table = format.table("quality", "status", "segments", "progress", "started", "completed", "", right=["segments"])
    for one in state.qualities:
        done = f"{one.segments_completed}/{one.segments_total}" if one.segments_total else ""
        bar = format.bar(one.progress_percent / 100, width=12, style=STEP_TONES.get(one.status, "bright_black"))
        started, completed = format.ago(one.started_at, now), format.ago(one.completed_at, now)
        table.add_row(one.quality, _status(one), done, bar, started, completed, one.error_message or one.reason or "")
    return [table]


def _status(one: Quality) -> Text:
    return Text(one.status.replace("_", " "), style=STEP_TONES.get(one.status, ""))


def _error(state: TranscodeProgress) -> list[RenderableType]:
    lines: list[RenderableType] = [Text(f"Warning: {warning}", style="yellow") for warning in state.warnings]
    if state.error:
        where = f" in {state.error['stage']}" if state.error.get("stage") else ""
        fault = format.fault(f"{state.error.get('code')}{where}", state.error.get("message"))
        lines.append(Text(fault, style="red"))
    return lines


def _versions(page: VideoPage, now: Instant) -> list[RenderableType]:
    if not page.versions:
        return []
    table = format.table(
        "version", "published", "job", "files", "bytes", "", right=["version", "job", "files", "bytes"]
    )
    for one in page.versions:
        left = f"replaced {format.ago(one.left_at, now)}" if one.left_at is not None else ""
        notes = ["shown" if one.current else left, "kept" if one.keep else ""]
        words = ", ".join(note for note in notes if note)
        published = format.moment(one.published_at, now)
        table.add_row(str(one.number), published, str(one.job_id), str(one.files), format.size(one.bytes), words)
    return [Text(), table]
