"""Bring a database to this release's schema: numbered migrations per dialect, forward only.

A migration is a file `0008_name.sql`, or a folder of that name with one file per subject. Each is one transaction, with
its row in `schema_version`. An empty database gets all of them, so they are the only source of the schema. A release
refuses a newer schema than it knows. The first release starts at 7: the schemas before were those of its development.
"""

from __future__ import annotations

import re
from importlib import resources
from importlib.resources.abc import Traversable

from telecine.errors import SchemaMissing, SchemaTooNew
from telecine.store.statements import Dialect

_NUMBER = re.compile(r"^(\d{4})_[a-z0-9_]+(?:\.sql)?$")


def migrations(dialect: Dialect) -> dict[int, str]:
    """All migrations by number."""
    found: dict[int, str] = {}
    for entry in (resources.files("telecine.store") / "sql" / dialect / "migrations").iterdir():
        if match := _NUMBER.match(entry.name):
            number = int(match.group(1))
            if number in found:
                raise ValueError(f"migration {number} is defined twice for {dialect}")
            found[number] = _text_of(entry)
    return dict(sorted(found.items()))


def _text_of(entry: Traversable) -> str:
    if entry.is_file():
        return entry.read_text()
    files = sorted(entry.iterdir(), key=lambda file: file.name)
    return "\n".join(file.read_text() for file in files if file.name.endswith(".sql"))


def newest(dialect: Dialect) -> int:
    return max(migrations(dialect))


def pending(dialect: Dialect, current: int | None) -> dict[int, str]:
    """The migrations that a database at version `current` has not seen; None: an empty database."""
    found = migrations(dialect)
    if current is None:
        return found
    oldest, known = min(found), max(found)
    if current > known:
        raise SchemaTooNew(f"the database has schema {current}; this release knows {known}: install a newer release")
    if current < oldest:
        raise SchemaMissing(
            f"the database has schema {current} of a development version, which cannot be upgraded: use a new database"
        )
    return {number: text for number, text in found.items() if number > current}


def check(dialect: Dialect, current: int | None) -> None:
    """Refuse to start on a schema that does not fit."""
    if current is None:
        raise SchemaMissing("the database has no Telecine schema: run `telecine migrate`")
    if pending(dialect, current):
        raise SchemaMissing(
            f"the database has schema {current}, this release needs {newest(dialect)}: run `telecine migrate`"
        )
