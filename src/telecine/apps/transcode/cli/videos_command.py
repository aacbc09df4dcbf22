"""Look at videos, and choose which of their versions is shown."""

from __future__ import annotations

import sys
from dataclasses import asdict
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from telecine.apps.transcode.cli.tones import TONES
from telecine.cli import format
from telecine.cli.common import INTERRUPTED, AsJson, Database, perform, settings_there
from telecine.errors import BadSpec

if TYPE_CHECKING:
    from rich.text import Text

    from telecine.apps.transcode.videos.video_view import Video
    from telecine.engine.queries.view_models import Page
    from telecine.facts import Instant
    from telecine.settings import Settings
    from telecine.wiring import Parts

ByOwner = Annotated[str | None, typer.Option("--owner", help="Only videos of this owner.")]
Limit = Annotated[int, typer.Option(min=1, max=500, help="At most so many.")]
Cursor = Annotated[str | None, typer.Option(help="Where the last page ended, as it was printed.")]
VideoId = Annotated[str, typer.Argument(metavar="ID", help="The video, as `telecine videos` names it.")]
Rollback = Annotated[bool, typer.Option("--rollback", help="Show the version before the present one again.")]
To = Annotated[int | None, typer.Option("--to", metavar="NUMBER", help="With --rollback: show this version.")]
Keep = Annotated[int | None, typer.Option(metavar="NUMBER", help="Never free this version.")]
Standing = Annotated[
    str | None, typer.Option("--status", help="Only those that are `pending`, `processing`, `ready` or `failed`.")
]
Delete = Annotated[bool, typer.Option("--delete", help="Delete it: its jobs are cancelled, its bytes go.")]
Yes = Annotated[bool, typer.Option("--yes", help="With --delete: do not ask.")]
LetGo = Annotated[int | None, typer.Option("--let-go", metavar="NUMBER", help="Undo --keep.")]


def videos(
    owner: ByOwner = None,
    status: Standing = None,
    limit: Limit = 20,
    cursor: Cursor = None,
    *,
    database: Database = None,
    as_json: AsJson = False,
) -> None:
    """List videos, the newest first: status, length, qualities, version and newest job."""
    if status not in (None, "pending", "processing", "ready", "failed"):
        raise BadSpec(f"a video is pending, processing, ready or failed, never {status!r}")

    async def look() -> None:
        from telecine.apps.transcode.videos.video_view import videos_of
        from telecine.wiring import open_engine

        async with open_engine(settings_there(database), create=False) as parts:
            page = await videos_of(parts.engine, owner=owner, status=cast(Any, status), cursor=cursor, limit=limit)
            now = await now_of(parts)
        if as_json:
            format.print_json({"videos": [asdict(one) for one in page.items], "next": page.next})
        else:
            _print_page(page, now)

    perform(look())


def _print_page(page: Page[Video], now: Instant) -> None:
    if not page.items:
        print("No videos.")
        return
    table = format.table("video", "status", "length", "qualities", "version", "age", "newest job", right=["version"])
    notes = [None if format.is_roomy() else _fault(one) for one in page.items]
    format.print_rows(table, [_row(one, now) for one in page.items], notes)
    if page.next:
        format.console().print(format.dim(f"More: --cursor {page.next}"))


def _row(one: Video, now: Instant) -> list[str | Text]:
    length = one.facts.get("duration_ms")
    return [
        one.id,
        format.state(one.status, TONES),
        "" if length is None else format.span(length),
        " ".join(one.facts.get("qualities") or ()),
        str(one.version or ""),
        "" if one.created_at is None else format.span(now - one.created_at, most=1),
        _job(one),
    ]


def _job(one: Video) -> Text:
    """The job that matters now: the open one, else the newest; with what goes on beside a video that plays."""
    from rich.text import Text

    job = one.open_job or one.job
    if job is None:
        return Text()
    words = Text(f"{job.id} ").append_text(format.state(job.status))
    if one.beside:
        return words.append(f"  {one.beside}", style="yellow")
    if one.status == "processing":
        return words.append(f"  {job.progress:.0%}")
    if format.is_roomy() and (fault := _fault(one)) is not None:
        fault.truncate(60, overflow="ellipsis")
        return words.append("  ").append_text(fault)
    return words


def _fault(one: Video) -> Text | None:
    """Why there is nothing to watch."""
    from rich.text import Text

    job = one.open_job or one.job
    if one.status != "failed" or one.beside or job is None or not job.error:
        return None
    return Text(str(job.error.get("message", "")), style="red")


def video(
    video_id: VideoId,
    rollback: Rollback = False,
    to: To = None,
    *,
    keep: Keep = None,
    let_go: LetGo = None,
    delete: Delete = False,
    yes: Yes = False,
    database: Database = None,
    as_json: AsJson = False,
) -> None:
    """Show one video: qualities, steps, versions, where its stream is. Or choose which version is shown or kept."""
    if to is not None and not rollback:
        raise BadSpec("--to says which version --rollback shows: give both")
    if delete:
        _confirm(video_id, is_sure=yes)
        perform(_delete(video_id, database, as_json))
        return

    async def look() -> None:
        from telecine.apps.transcode.videos.video_view import page_of
        from telecine.wiring import open_engine

        settings = settings_there(database)
        async with open_engine(settings, create=False) as parts:
            said = await _decide(parts, video_id, (rollback, to), (keep, let_go))
            now = await now_of(parts)
            page = await page_of(parts.engine, video_id)
        if as_json:
            format.print_json(plain(page, settings))
            return
        from telecine.apps.transcode.cli.video_page import render

        for sentence in said:
            print(sentence)
        if not said:
            format.console().print(render(page, now, lambda key: place_of(settings, key)))

    perform(look())


def _confirm(video_id: str, *, is_sure: bool) -> None:
    """Ask before what cannot be undone; a script says --yes."""
    if is_sure:
        return
    if not sys.stdin.isatty():
        raise BadSpec(f"--delete would delete {video_id} and its files for good: add --yes to do it without a question")
    if not typer.confirm(f"Delete {video_id} and its files for good?", err=True):
        print("Nothing was deleted.", file=sys.stderr)
        raise typer.Exit(INTERRUPTED)


async def _delete(video_id: str, database: str | None, as_json: bool) -> None:
    from telecine.apps.transcode.client import Videos
    from telecine.wiring import open_engine

    async with open_engine(settings_there(database), create=False) as parts:
        await Videos(parts.engine).delete(video_id)
    if as_json:
        format.print_json({"id": video_id, "deleted": True})
    else:
        print(f"{video_id} is deleted; its bytes go when nobody works on it any more.")


async def _decide(
    parts: Parts, video_id: str, rollback: tuple[bool, int | None], keeping: tuple[int | None, int | None]
) -> list[str]:
    """Do what was asked for; a sentence for each thing that was."""
    from telecine.apps.transcode.videos import versions
    from telecine.wiring import open_artifacts

    said: list[str] = []
    for number, wanted in zip(keeping, (True, False), strict=True):
        if number is not None:
            await versions.keep(parts.engine, video_id, number, wanted)
            said.append(f"Version {number} of {video_id} {'is kept' if wanted else 'may be freed'}.")
    if rollback[0]:
        shown = await versions.roll_back(parts.engine, open_artifacts(parts.settings), video_id, rollback[1])
        said.append(f"{video_id} shows version {shown}.")
    return said


async def now_of(parts: Parts) -> Instant:
    from telecine.client import Client

    return await Client(parts).now()


def place_of(settings: Settings, key: str) -> str:
    """Where an artifact is: a path, or an address in a bucket."""
    root = settings.artifacts_url
    if "://" in root and not root.startswith("file://"):
        return f"{settings.shown('artifacts_url').rstrip('/')}/{key}"
    return str(Path(root.removeprefix("file://")).resolve() / key)


def plain(page: Any, settings: Settings) -> dict[str, Any]:
    """The page as JSON has it: places beside keys, seconds as numbers."""
    found = asdict(page)
    for name in ("master", "poster", "thumbnails"):
        key = found[name]
        found[name] = None if key is None else {"key": key, "place": place_of(settings, key)}
    if found["progress"] is not None and isinstance(found["progress"]["length"], Fraction):
        found["progress"]["length"] = float(found["progress"]["length"])
    return found
