"""Every error class that the drivers have is sorted. A class that a new release brings is an outage, or fails here."""

import asyncio
import inspect
import sqlite3
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import asyncpg
import asyncpg.exceptions
import httpx
import obstore.exceptions
import pytest
import redis.exceptions

from telecine import errors
from telecine.errors import TelecineError
from telecine.triage import CLASSES, SPECIAL, SQLITE_CODES, SQLSTATES, Verdict, triage, triage_driver

OUTAGE, REFUSED, BUG = Verdict.OUTAGE, Verdict.REFUSED, Verdict.BUG


def classes_of(module: ModuleType, base: type[BaseException] = Exception) -> list[type[Any]]:
    found = {value for value in vars(module).values() if inspect.isclass(value) and issubclass(value, base)}
    assert found
    return sorted(found, key=lambda kind: kind.__name__)


def raised(kind: type[Any], *words: Any) -> Any:
    """An instance, whatever its constructor asks for."""
    return kind.__new__(kind, *words)


def by_name(module: ModuleType, base: type[BaseException] = Exception) -> dict[str, Verdict]:
    return {kind.__name__: triage_driver(raised(kind)) for kind in classes_of(module, base)}


def other_than_outage(verdicts: dict[str, Verdict]) -> dict[str, Verdict]:
    return {name: verdict for name, verdict in verdicts.items() if verdict is not OUTAGE}


# -- PostgreSQL ------------------------------------------------------------------------------------


def postgres_classes() -> Iterator[type[asyncpg.PostgresError]]:
    for kind in classes_of(asyncpg.exceptions, asyncpg.PostgresError):
        if kind.sqlstate is not None:
            yield kind


@pytest.mark.parametrize("kind", [*postgres_classes()], ids=lambda kind: f"{kind.sqlstate}-{kind.__name__}")
def test_what_postgresql_says_is_sorted_by_its_sqlstate(kind: type[asyncpg.PostgresError]) -> None:
    state = str(kind.sqlstate)
    error = asyncpg.PostgresError.new({"S": "ERROR", "V": "ERROR", "C": state, "M": "no"}, query="")
    ended = asyncpg.PostgresError.new({"S": "FATAL", "V": "FATAL", "C": state, "M": "no"}, query="")

    about_the_value = state[:2] in ("21", "22", "23", "44", "54")
    ours = state[:2] == "42" and state not in ("42501", "42P05")
    assert triage(error) is (REFUSED if about_the_value else BUG if ours else OUTAGE)
    assert triage(ended) is OUTAGE


def test_every_sqlstate_of_the_table_exists() -> None:
    known = {str(kind.sqlstate) for kind in postgres_classes()}

    assert set(SQLSTATES) <= known | {state[:2] for state in known}


def test_a_sqlstate_that_nobody_knows_is_an_outage() -> None:
    assert triage(asyncpg.PostgresError.new({"S": "ERROR", "V": "ERROR", "C": "ZZ123", "M": "no"}, query="")) is OUTAGE
    assert triage(raised(asyncpg.UnknownPostgresError, "no")) is OUTAGE


def test_what_asyncpg_raises_by_itself_is_an_outage_but_for_a_value_that_does_not_fit() -> None:
    known = {*classes_of(asyncpg.exceptions), *classes_of(asyncpg.exceptions._base)}
    own = [kind for kind in known if not issubclass(kind, asyncpg.PostgresError)]

    sorted_ = {kind.__name__: triage_driver(raised(kind, "cannot switch to state 12")) for kind in own}

    assert sorted_["InternalClientError"] is OUTAGE
    assert other_than_outage(sorted_) == {"DataError": REFUSED}


# -- SQLite ----------------------------------------------------------------------------------------


def test_what_sqlite_says_is_sorted_by_its_result_code() -> None:
    codes = {
        name: value
        for name, value in vars(sqlite3).items()
        if name.startswith("SQLITE_") and isinstance(value, int) and _is_result(name)
    }
    assert codes["SQLITE_FULL"] == 13

    found = {}
    for name, code in codes.items():
        for kind in classes_of(sqlite3, sqlite3.Error):
            error = raised(kind, "no")
            error.sqlite_errorcode = code
            found[name] = triage(error)

    refused = {name for name, verdict in found.items() if verdict is REFUSED}
    assert {name for name in refused if name.count("_") == 1} == {
        "SQLITE_TOOBIG",
        "SQLITE_CONSTRAINT",
        "SQLITE_MISMATCH",
    }
    assert all(
        name.startswith(("SQLITE_CONSTRAINT_", "SQLITE_TOOBIG", "SQLITE_MISMATCH", "SQLITE_CONSTRAINT"))
        for name in refused
    )
    bugs = {name for name, verdict in found.items() if verdict is BUG}
    assert {name for name in bugs if not name.startswith("SQLITE_ERROR")} == {"SQLITE_MISUSE", "SQLITE_RANGE"}
    assert set(SQLITE_CODES) <= set(codes.values())


def _is_result(name: str) -> bool:
    """Names of results, and not of actions, limits or options."""
    words = (
        "ABORT AUTH BUSY CANTOPEN CONSTRAINT CORRUPT EMPTY ERROR FORMAT FULL INTERNAL INTERRUPT IOERR LOCKED MISMATCH "
        "MISUSE NOLFS NOMEM NOTADB NOTFOUND PERM PROTOCOL RANGE READONLY SCHEMA TOOBIG"
    )
    return name.split("_")[1] in words.split()


def test_what_the_sqlite3_module_raises_by_itself_is_sorted_by_class_and_words() -> None:
    assert by_name(sqlite3, sqlite3.Error) == {
        "DataError": REFUSED,
        "DatabaseError": OUTAGE,
        "Error": OUTAGE,
        "IntegrityError": REFUSED,
        "InterfaceError": OUTAGE,
        "InternalError": OUTAGE,
        "NotSupportedError": BUG,
        "OperationalError": OUTAGE,
        "ProgrammingError": BUG,
    }
    with sqlite3.connect(":memory:") as database:
        for value in ({1}, 2**70, "\ud800"):
            with pytest.raises((sqlite3.Error, OverflowError, UnicodeError)) as caught:
                database.execute("select ?", (value,))
            assert triage(caught.value) is REFUSED
    database.close()


# -- Redis, HTTP, object stores --------------------------------------------------------------------


def test_what_redis_says_is_an_outage_unless_it_refuses_one_command() -> None:
    found = other_than_outage(by_name(redis.exceptions))

    refusals = set(classes_of(redis.exceptions, redis.exceptions.ResponseError))
    refusals -= set(classes_of(redis.exceptions, redis.exceptions.AskError))
    refusals -= {redis.exceptions.ReadOnlyError, redis.exceptions.TryAgainError}
    assert found == {kind.__name__: REFUSED for kind in (*refusals, redis.exceptions.DataError)}


def test_what_httpx_raises_is_an_outage_unless_the_address_is_wrong() -> None:
    found = {
        kind.__name__: triage_driver(raised(kind)) for kind in classes_of(httpx) if kind is not httpx.HTTPStatusError
    }

    assert other_than_outage(found) == {
        "InvalidURL": REFUSED,
        "UnsupportedProtocol": REFUSED,
    }


@pytest.mark.parametrize(
    ("status", "verdict"), [(400, REFUSED), (404, REFUSED), (408, OUTAGE), (429, OUTAGE), (500, OUTAGE), (503, OUTAGE)]
)
def test_a_status_says_whose_fault_it_is(status: int, verdict: Verdict) -> None:
    request = httpx.Request("GET", "http://here")

    assert triage(httpx.HTTPStatusError("no", request=request, response=httpx.Response(status))) is verdict


def test_what_obstore_raises_is_an_outage_unless_the_key_or_the_request_is_wrong() -> None:
    assert other_than_outage(by_name(obstore.exceptions)) == {
        "AlreadyExistsError": REFUSED,
        "InvalidPathError": REFUSED,
        "NotFoundError": REFUSED,
        "NotModifiedError": REFUSED,
        "NotSupportedError": REFUSED,
        "PreconditionError": REFUSED,
        "UnknownConfigurationKeyError": REFUSED,
    }


# -- Python's own, and ours ------------------------------------------------------------------------


def test_the_machine_and_the_network_fail_by_outages() -> None:
    for error in (
        OSError(28, "No space left on device"),
        ConnectionResetError(),
        TimeoutError(),
        asyncio.IncompleteReadError(b"", 1),
        EOFError(),
        MemoryError(),
    ):
        assert triage(error) is OUTAGE


@pytest.mark.parametrize("kind", [TypeError, AssertionError, KeyError, AttributeError, RuntimeError, ValueError])
def test_an_error_of_python_is_our_bug_unless_a_driver_raised_it(kind: type[Exception]) -> None:
    assert triage(kind("the handler is closed")) is BUG
    assert triage_driver(kind("the handler is closed")) is OUTAGE


def test_a_value_that_no_parameter_can_hold_is_refused() -> None:
    for error in (OverflowError(), RecursionError(), UnicodeEncodeError("utf-8", "\ud800", 0, 1, "no")):
        assert triage_driver(error) is REFUSED


def test_every_error_of_ours_is_sorted() -> None:
    found: dict[Verdict, set[str]] = {verdict: set() for verdict in Verdict}
    for kind in classes_of(errors, TelecineError):
        found[triage(raised(kind, "no"))].add(kind.__name__)

    assert found[OUTAGE] == {
        "ArtifactError", "ArtifactsFull", "NoSpace", "SchemaMissing", "SchemaTooNew", "SourceUnreachable", "StoreError",
        "TooMany", "Unreachable",
    }  # fmt: skip
    assert found[BUG] == {"StoreBroken"}


def test_every_name_of_the_table_is_the_name_of_a_class() -> None:
    modules = [asyncpg.exceptions, asyncpg.exceptions._base, sqlite3, redis.exceptions, httpx, obstore.exceptions]
    known = {f"{kind.__module__}.{kind.__qualname__}" for module in modules for kind in classes_of(module)}
    known |= {f"builtins.{name}" for name in vars(__import__("builtins"))}

    assert {*CLASSES, *SPECIAL} - known == set()
