"""What all commands share: the two options that each has, the way to the database, and how errors end."""

from __future__ import annotations

import gc
import sys
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from telecine.errors import Conflict, NotAllowed, NotFound, Refused, SchemaMissing, StoreError, TelecineError

if TYPE_CHECKING:
    import asyncio
    from pathlib import Path

    from telecine.client import Client
    from telecine.settings import Loaded, Settings


@dataclass
class Before:
    """The two options before the command: `telecine --json --database URL jobs`. After it, a database counts more."""

    database: str | None = None
    as_json: bool = False

    def forget(self) -> None:
        self.database, self.as_json = None, False


before_command = Before()


def _database(value: str | None) -> str | None:
    if value is not None:
        before_command.database = value
    return before_command.database


def _as_json(value: bool) -> bool:
    before_command.as_json = before_command.as_json or value
    return before_command.as_json


# The callbacks run for `telecine`, then for a group such as `workers`, then for the command.
Database = Annotated[
    str | None,
    typer.Option(
        "--database",
        metavar="URL",
        help="The database, if not the one of the settings.",
        show_default=False,
        callback=_database,
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON (streams: one object per line).", callback=_as_json)]
JobNumber = Annotated[int, typer.Argument(metavar="ID", help="The job's number.", show_default=False)]

OK, BUG, BAD_INPUT, NOT_FOUND, CONFLICT, JOB_FAILED, NO_DATABASE, SHUT_OUT, INTERRUPTED = 0, 1, 2, 3, 4, 5, 6, 7, 130
SELDOM = (20_000, 10, 10)  # new objects until the youngest are looked at, and how often the older ones are
# The first that fits; what is in none of these lines is our bug.
EXIT: tuple[tuple[type[TelecineError], int], ...] = (
    (NotFound, NOT_FOUND),
    (Conflict, CONFLICT),
    (StoreError, NO_DATABASE),
    (Refused, BAD_INPUT),
    (NotAllowed, SHUT_OUT),
    (TelecineError, BUG),
)


def exit_code(error: TelecineError) -> int:
    return next(code for kind, code in EXIT if isinstance(error, kind))


def complain(sentence: str) -> None:
    print(f"telecine: {sentence}", file=sys.stderr)


def perform(work: Coroutine[Any, Any, int | None], *, swift: bool = False) -> None:
    """Run a command's work; a number that it returns is the exit code. `swift`: on uvloop, where there is one."""
    import asyncio

    gc.freeze()  # never garbage, so it is not looked at again
    gc.enable()
    if swift:  # what a worker makes for each task goes without being looked for: look seldom
        gc.set_threshold(*SELDOM)
    with asyncio.Runner(loop_factory=_swift_loop() if swift else None) as runner:
        code = runner.run(work)
    if code:
        raise typer.Exit(code)


def _swift_loop() -> Callable[[], asyncio.AbstractEventLoop] | None:
    try:
        import uvloop
    except ImportError:  # Windows has none
        return None
    return uvloop.new_event_loop


def settings_for(database: str | None, given: Mapping[str, Any] | None = None) -> Loaded:
    from telecine.settings import load

    return load(given={"database_url": database, **(given or {})})


def settings_there(database: str | None) -> Settings:
    """Settings for a command that brings no work: it makes no SQLite file, and says where one may be."""
    from telecine.wiring import sqlite_path
    from telecine.wiring.database import is_sqlite

    settings = settings_for(database).settings
    url = settings.database_url
    if is_sqlite(url) and not _is_there(sqlite_path(url)):
        raise SchemaMissing(
            f"there is no database at {sqlite_path(url)}: go to the folder where the work was begun, or name its "
            "database with --database; `telecine migrate` makes a new one"
        )
    return settings


def _is_there(path: Path) -> bool:
    try:
        return path.exists()
    except PermissionError:
        raise StoreError(f"{path} cannot be read: its folder belongs to another user; work as that user") from None


@asynccontextmanager
async def session(database: str | None, *, create: bool = False) -> AsyncIterator[Client]:
    """A client for one command; only commands that bring work make a SQLite file that is not there."""
    from telecine.client import Client
    from telecine.wiring import open_engine

    settings = settings_for(database).settings if create else settings_there(database)
    async with open_engine(settings, create=create) as parts:
        yield Client(parts)
