"""What asyncpg raises -> an error of ours, by the table in `telecine.triage`."""

from __future__ import annotations

import asyncpg

from telecine.errors import Rejected, StoreBroken, StoreError, Unreachable
from telecine.triage import FATAL, Verdict, triage_driver

# The transaction lost a race and was rolled back: run it again.
CONTENDED = (
    asyncpg.DeadlockDetectedError,
    asyncpg.SerializationError,
    asyncpg.LockNotAvailableError,
    # Two submits with one key or dedupe key: the second look finds the first.
    asyncpg.UniqueViolationError,
)
# SQLSTATE classes of a server that cannot serve anybody just now. Other outages may be those of one statement.
SERVERLESS = ("08", "25", "28", "3D", "53", "57", "58")
# asyncpg's words for a statement that it did not send.
UNSENT = ("cannot switch to state", "cannot perform operation: connection is closed", "connection is closed")


class Contended(StoreError):
    """Another transaction was in the way."""


class StatementNotSent(Unreachable):
    """The connection had ended before the statement was sent: to run the transaction again is safe."""


def translated(error: Exception) -> StoreError:
    """The error of ours that it stands for; the caller chains it."""
    if isinstance(error, CONTENDED):
        return Contended(f"the database refused a transaction: {error}")
    if isinstance(error, asyncpg.PostgresError):
        return _of_server(error)
    if triage_driver(error) is Verdict.REFUSED:
        return Rejected(f"PostgreSQL cannot store a value: {error}")
    kind = StatementNotSent if str(error).startswith(UNSENT) else Unreachable
    return kind(f"lost the connection to PostgreSQL: {_told(error)}")


def _of_server(error: asyncpg.PostgresError) -> StoreError:
    match triage_driver(error):
        case Verdict.REFUSED:
            return Rejected(f"PostgreSQL refused a statement: {error}")
        case Verdict.BUG:
            return StoreBroken(f"PostgreSQL does not understand a statement of ours: {error}")
        case Verdict.OUTAGE if is_fatal(error) or str(error.sqlstate or "08")[:2] in SERVERLESS:
            lost = is_fatal(error) or error.sqlstate is None
            why = "lost the connection to PostgreSQL" if lost else "PostgreSQL cannot work just now"
            return Unreachable(f"{why}: {_told(error)}")
        case _:
            return StoreError(f"PostgreSQL could not run a statement: {error}")


def is_fatal(error: BaseException) -> bool:
    """Whether PostgreSQL, or a pooler before it, ended the session with this error."""
    cause = error if isinstance(error, asyncpg.PostgresError) else error.__cause__
    if not isinstance(cause, asyncpg.PostgresError):
        return False
    severity = getattr(cause, "severity_en", None) or getattr(cause, "severity", None)
    return severity in FATAL or isinstance(cause, asyncpg.PostgresConnectionError)


def _told(error: Exception) -> str:
    words = str(error)
    if isinstance(error, asyncpg.InternalClientError) and words.startswith(UNSENT[0]):
        return "PostgreSQL ended the session"
    return words or type(error).__name__
