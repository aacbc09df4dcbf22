"""One job on one screen."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from telecine.cli import format
from telecine.facts import SECOND, Instant, Millis, Status
from telecine.plural import counted

if TYPE_CHECKING:
    from telecine.client import Client
    from telecine.engine.queries.view_models import JobView, StageView, Waiting

MAX_FILES = 20
SOON = 2 * SECOND
MAX_RESULTS = 10
MAX_WARNINGS = 5


async def reasons_of(client: Client, view: JobView) -> dict[str, Waiting]:
    """Why the first waiting task of each open stage does not run yet, by stage."""
    found: dict[str, Waiting] = {}
    if Status(view.status).is_final:
        return found
    for stage in view.stages:
        if stage.counts.get("ready") or (stage.state == "new" and stage.counts.get("new")):
            state = "ready" if stage.counts.get("ready") else "new"
            page = await client.views.tasks(view.id, stage=stage.name, state=state, limit=1)
            for task in page.items:
                waiting = (await client.views.task(task.id)).waiting
                if waiting is not None:
                    found[stage.name] = waiting
    return found


def render(view: JobView, waits: dict[str, Waiting], now: Instant, worked: Millis) -> RenderableType:
    parts: list[RenderableType] = [_head(view), _facts(view, now, worked), Text(), _stages(view, waits, now)]
    parts += _error(view) + _warnings(view) + _results(view) + _files(view)
    return Group(*parts)


def _head(view: JobView) -> Text:
    head = Text.assemble((f"Job {view.id}", "bold"), f"  {view.flow}@{view.flow_version}  ")
    head.append_text(format.state(view.status))
    if view.cancel_asked and not Status(view.status).is_final:
        head.append("  stopping", style="yellow")
    head.append("  ")
    head.append_text(format.bar(view.progress, style=format.TONES[view.status]))
    return head


def _facts(view: JobView, now: Instant, worked: Millis) -> Table:
    facts = Table.grid(padding=(0, 2, 0, 0))
    lines = {
        "submitted": format.moment(view.created_at, now),
        "runs from": format.moment(view.run_at, now),
        "started": format.moment(view.started_at, now),
        "ended": format.moment(view.ended_at, now),
        "took": "" if view.started_at is None else format.took((view.ended_at or now) - view.started_at, worked),
        "archived": format.moment(view.archived_at, now),
        "subject": "/".join(view.subject or ()),
        "owner": view.owner,
        "priority": str(view.priority),
        "after": ", ".join(map(str, view.waits_for)),
        "dedupe key": view.dedupe_key or "",
        "generation": str(view.generation) if view.generation > 1 else "",
        "retries": str(view.retries or ""),
        "workers": ", ".join(f"{worker.name or '?'} ({worker.id})" for worker in view.workers),
        "spec": format.short(format.compact(view.spec), 400) if view.spec else "",
    }
    for name, value in lines.items():
        if value:
            facts.add_row(format.dim(name), value)
    return facts


def _stages(view: JobView, waits: dict[str, Waiting], now: Instant) -> Table:
    table = format.table("stage", "state", "progress", "tasks", "took", "", right=["tasks"])
    for stage in view.stages:
        waiting = waits.get(stage.name)
        word = "scheduled" if waiting and waiting.until and stage.state == "ready" else stage.state
        ended = stage.total - sum(stage.counts.get(state, 0) for state in ("new", "ready", "running"))
        count = f"{ended}/{stage.total}" if stage.total else "–"
        took = "" if stage.started_at is None else format.span((stage.ended_at or now) - stage.started_at)
        name = f"{stage.title}{' (optional)' if stage.optional else ''}"
        progress = format.bar(stage.progress, width=16, style=format.TONES[stage.state])
        table.add_row(name, format.state(word), progress, count, took, format.dim(_note(stage, waiting, now)))
    return table


def _note(stage: StageView, waiting: Waiting | None, now: Instant) -> str:
    if waiting is not None:
        if waiting.until is None:
            return waiting.text + start_of(waiting, now)
        why = format.short(waiting.text, 100) if stage.state == "ready" and waiting.text.startswith("attempt") else ""
        return f"due {format.ago(waiting.until, now)}{'; ' if why else ''}{why}"
    if stage.fan_out and not stage.total and stage.state == "new":
        return "not planned yet"
    return ", ".join(f"{n} {state}" for state, n in stage.counts.items() if state in ("error", "cancelled") and n)


def start_of(waiting: Waiting, now: Instant) -> str:
    """The guess of a start, if there is one that says something."""
    if waiting.starts_at is None or waiting.starts_at - now < SOON:
        return ""
    return f"; starts about {format.ago(waiting.starts_at, now)}"


def _error(view: JobView) -> list[RenderableType]:
    if not view.error:
        return []
    where = f" in {view.error['stage']}, attempt {view.error['attempt']}" if view.error.get("stage") else ""
    code = str(view.error.get("code", "error"))
    rest = format.fault(f"{code}{where}", view.error.get("message")).removeprefix(code)
    return [Text.assemble("\n", (code, "red bold"), rest)]


def _warnings(view: JobView) -> list[RenderableType]:
    lines: list[RenderableType] = []
    for problem in view.warnings[:MAX_WARNINGS]:
        place = f"{problem.stage}[{problem.position}]"
        lines.append(
            Text.assemble(("warning ", "yellow"), f"{place} {problem.code}: {format.short(problem.message, 200)}")
        )
    if view.warning_count > len(lines):
        lines.append(format.dim(f"and {counted(view.warning_count - len(lines), 'more warning')}"))
    return [Text(), *lines] if lines else []


def _results(view: JobView) -> list[RenderableType]:
    if not view.results:
        return []
    many = {stage.name for stage in view.stages if stage.fan_out}
    table = format.table("result of", "")
    for result in view.results[:MAX_RESULTS]:
        place = f"{result.stage}[{result.position}]" if result.stage in many else result.stage
        table.add_row(place, format.short(format.compact(result.value), 400))
    more = len(view.results) - MAX_RESULTS
    return [
        Text(),
        table,
        *([format.dim(f"and {counted(more, 'more result')}; `--json` has them")] if more > 0 else []),
    ]


def _files(view: JobView) -> list[RenderableType]:
    if not view.outputs:
        return []
    table = format.table("file", "stage", "size", "key", right=["size"])
    for file in view.outputs[:MAX_FILES]:
        table.add_row(file.name, file.stage, format.size(file.size), format.dim(file.key))
    more = view.output_count - min(MAX_FILES, len(view.outputs))
    return [Text(), table, *([format.dim(f"and {counted(more, 'more file')}")] if more else [])]
