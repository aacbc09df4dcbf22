"""Sort errors: wait and try again, refuse the request, or report a bug of ours. One table for every driver.

    OUTAGE    a driver, a network or a server failed: keep the request and repeat it
    REFUSED   the database or the server says that this very request is wrong: repeating it is useless
    BUG       neither: our own code, our statements or a damaged schema

An error that no line of the table names is an OUTAGE if it comes from a driver: to wait for nothing costs time, to
call an outage the value's fault costs finished work. Classes are named by strings, so that this module imports no
driver; `tests/unit/test_triage.py` compares the names with every class that the drivers have.
"""

from __future__ import annotations

from enum import Enum
from typing import Any

from telecine.errors import (
    ArtifactDamaged,
    ArtifactError,
    NoSpace,
    Refused,
    Rejected,
    SourceUnreachable,
    StoreBroken,
    StoreError,
    TelecineError,
    TooMany,
)


class Verdict(Enum):
    OUTAGE = "outage"
    REFUSED = "refused"
    BUG = "bug"


# The first that fits; every other error of ours is an answer, and repeating the request gets the same one.
OURS: tuple[tuple[type[TelecineError], Verdict], ...] = (
    (Rejected, Verdict.REFUSED),
    (Refused, Verdict.REFUSED),
    (StoreBroken, Verdict.BUG),
    (StoreError, Verdict.OUTAGE),
    (ArtifactDamaged, Verdict.REFUSED),
    (ArtifactError, Verdict.OUTAGE),
    (TooMany, Verdict.OUTAGE),
    (NoSpace, Verdict.OUTAGE),
    (SourceUnreachable, Verdict.OUTAGE),
    (TelecineError, Verdict.REFUSED),
)

# The nearest class in the order of inheritance decides.
CLASSES: dict[str, Verdict] = {
    # Raised by asyncpg before anything is sent: the value does not fit the parameter's type.
    "asyncpg.exceptions._base.DataError": Verdict.REFUSED,
    # Redis answers, and refuses one command (out of memory, no permission, a key of another type): do without it.
    "redis.exceptions.ResponseError": Verdict.REFUSED,
    "redis.exceptions.DataError": Verdict.REFUSED,
    # Redis answers, and is not the one to ask: a replica, or a part of a cluster.
    "redis.exceptions.ReadOnlyError": Verdict.OUTAGE,
    "redis.exceptions.AskError": Verdict.OUTAGE,
    "redis.exceptions.TryAgainError": Verdict.OUTAGE,
    # An address that cannot be asked at all.
    "httpx.InvalidURL": Verdict.REFUSED,
    "httpx.UnsupportedProtocol": Verdict.REFUSED,
    "obstore.exceptions.NotFoundError": Verdict.REFUSED,
    "obstore.exceptions.InvalidPathError": Verdict.REFUSED,
    "obstore.exceptions.NotSupportedError": Verdict.REFUSED,
    "obstore.exceptions.AlreadyExistsError": Verdict.REFUSED,
    "obstore.exceptions.PreconditionError": Verdict.REFUSED,
    "obstore.exceptions.NotModifiedError": Verdict.REFUSED,
    "obstore.exceptions.UnknownConfigurationKeyError": Verdict.REFUSED,
    # Values that no parameter can hold: too large for 64 bits, not encodable, nested too deeply.
    "builtins.OverflowError": Verdict.REFUSED,
    "builtins.UnicodeError": Verdict.REFUSED,
    "builtins.RecursionError": Verdict.REFUSED,
    # The machine and the network. asyncio's own errors are derived from these.
    "builtins.OSError": Verdict.OUTAGE,
    "builtins.EOFError": Verdict.OUTAGE,
    "builtins.MemoryError": Verdict.OUTAGE,
}

# SQLSTATE of what PostgreSQL says, five characters before two; what is not here is an outage.
# https://www.postgresql.org/docs/current/errcodes-appendix.html
SQLSTATES: dict[str, Verdict] = {
    "21": Verdict.REFUSED,  # cardinality: one statement, two values for the same row
    "22": Verdict.REFUSED,  # the value does not fit its type
    "23": Verdict.REFUSED,  # the value breaks a constraint
    "44": Verdict.REFUSED,  # the value breaks a view's check
    "54": Verdict.REFUSED,  # the value exceeds a limit: too large for an index, nested too deeply
    "42": Verdict.BUG,  # a statement of ours is wrong, or the schema is not what it should be
    "42501": Verdict.OUTAGE,  # privileges were revoked: the operator can grant them again
    "42P05": Verdict.OUTAGE,  # a prepared statement of another session, behind a pooler
}
FATAL = frozenset({"FATAL", "PANIC"})  # the session is over, whatever the code says

# Primary result codes of SQLite; what is not here is an outage (busy, full, read-only, I/O, corrupt, …).
# https://www.sqlite.org/rescode.html
SQLITE_CODES: dict[int, Verdict] = {
    1: Verdict.BUG,  # SQLITE_ERROR: a wrong statement or a missing table
    18: Verdict.REFUSED,  # SQLITE_TOOBIG
    19: Verdict.REFUSED,  # SQLITE_CONSTRAINT
    20: Verdict.REFUSED,  # SQLITE_MISMATCH
    21: Verdict.BUG,  # SQLITE_MISUSE
    25: Verdict.BUG,  # SQLITE_RANGE: a parameter that the statement does not have
}
# What the module raises by itself has no code; it refuses values of a type that SQLite does not have.
UNBOUND = "Error binding parameter"

SERVER = 500
PASSING = frozenset({408, 425, 429})  # the server asks for patience


def triage(error: BaseException) -> Verdict:
    """What to do about an error."""
    if isinstance(error, TelecineError):
        return next(verdict for kind, verdict in OURS if isinstance(error, kind))
    for kind in type(error).__mro__:
        name = f"{kind.__module__}.{kind.__qualname__}"
        if name in SPECIAL:
            return SPECIAL[name](error)
        if name in CLASSES:
            return CLASSES[name]
    return Verdict.BUG if type(error).__module__.partition(".")[0] in ("builtins", "telecine") else Verdict.OUTAGE


def triage_driver(error: BaseException) -> Verdict:
    """The same for an error that a call of a driver raised: none of them is our bug, whatever its class is.

    A transport that closes under a driver makes it raise RuntimeError, AttributeError and the like.
    """
    verdict = triage(error)
    is_plain = type(error).__module__ == "builtins"
    return Verdict.OUTAGE if verdict is Verdict.BUG and is_plain else verdict


def _of_postgres(error: Any) -> Verdict:
    state = str(error.sqlstate or "")
    if (getattr(error, "severity_en", None) or getattr(error, "severity", None)) in FATAL:
        return Verdict.OUTAGE
    return SQLSTATES.get(state) or SQLSTATES.get(state[:2]) or Verdict.OUTAGE


def _of_sqlite(error: Any) -> Verdict:
    code = getattr(error, "sqlite_errorcode", None)
    if code is not None:
        return SQLITE_CODES.get(code & 0xFF, Verdict.OUTAGE)
    kind = type(error).__name__
    if str(error).startswith(UNBOUND) or kind in ("IntegrityError", "DataError"):
        return Verdict.REFUSED
    return Verdict.BUG if kind in ("ProgrammingError", "NotSupportedError") else Verdict.OUTAGE


def _of_status(error: Any) -> Verdict:
    status = error.response.status_code
    return Verdict.OUTAGE if status >= SERVER or status in PASSING else Verdict.REFUSED


SPECIAL = {
    "asyncpg.exceptions._base.PostgresError": _of_postgres,
    "sqlite3.Error": _of_sqlite,
    "httpx.HTTPStatusError": _of_status,
}
