"""What sqlite3 raises -> an error of ours, by the table in `telecine.triage`; and what an operator can do about it."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from telecine.errors import Rejected, StoreBroken, StoreError, Unreachable
from telecine.triage import Verdict, triage_driver

# Raised when statements are run or values bound. Errors of our own steps have other classes.
DRIVER = (sqlite3.Error, OverflowError, UnicodeError, OSError, MemoryError)

FULL = "the disk is full: free some space; nothing that was acknowledged is lost"
# What to do, by the primary code; SQLite's own words stand before it.
HINTS = {
    sqlite3.SQLITE_FULL: FULL,
    sqlite3.SQLITE_READONLY: "check who owns the file and its folder",
    sqlite3.SQLITE_CANTOPEN: "check that its folder exists, and who owns it",
    sqlite3.SQLITE_CORRUPT: "the file is damaged: stop every process that uses it and restore a backup",
    sqlite3.SQLITE_NOTADB: "name a file that is an SQLite database, or one that does not exist yet",
    sqlite3.SQLITE_BUSY: "another process has been writing for too long",
    sqlite3.SQLITE_IOERR: "the disk is full or fails: free some space, or look into the system's log",
}
# SQLite needs a little room for its own bookkeeping, and calls it an I/O error if there is none.
MIN_ROOM = 1 << 20


def translated(error: Exception, path: Path) -> StoreError:
    """The error of ours that it stands for; the caller chains it."""
    hint = _hint(error, path)
    words = f"{path}: {error}" if hint is None else f"{path}: {error} ({hint})"
    match triage_driver(error):
        case Verdict.REFUSED:
            return Rejected(words)
        case Verdict.BUG:
            return StoreBroken(words)
        case Verdict.OUTAGE if hint is not None:
            return Unreachable(words)
    return StoreError(words)


def _hint(error: Exception, path: Path) -> str | None:
    code = getattr(error, "sqlite_errorcode", None)
    primary = None if code is None else code & 0xFF
    if primary in (sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN) and _is_full(path.parent):
        return FULL
    return None if primary is None else HINTS.get(primary)


def _is_full(folder: Path) -> bool:
    try:
        return shutil.disk_usage(folder).free < MIN_ROOM
    except OSError:
        return False


@contextmanager
def telling(path: Path) -> Iterator[None]:
    try:
        yield
    except DRIVER as error:
        raise translated(error, path) from error
