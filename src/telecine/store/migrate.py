"""Bring a database to this release's schema: numbered SQL files per dialect, forward only.

An empty database is built from `schema/`, which is the sum of all migrations (a test compares the two).
Each migration is one transaction, with its row in `schema_version`; a start on a newer schema than this
release knows is refused.
"""

from __future__ import annotations

import re
from importlib import resources
from importlib.resources.abc import Traversable

from telecine.errors import SchemaMissing, SchemaTooNew
from telecine.store.statements import Dialect

_NUMBER = re.compile(r"^(\d{4})_[a-z0-9_]+\.sql$")


def _folder(dialect: Dialect, name: str) -> Traversable:
    return resources.files("telecine.store") / "sql" / dialect / name


def schema(dialect: Dialect) -> str:
    """The whole schema as it is now."""
    files = sorted(_folder(dialect, "schema").iterdir(), key=lambda f: f.name)
    return "\n".join(file.read_text() for file in files if file.name.endswith(".sql"))


def migrations(dialect: Dialect) -> dict[int, str]:
    """All migrations by number."""
    found: dict[int, str] = {}
    for file in _folder(dialect, "migrations").iterdir():
        if match := _NUMBER.match(file.name):
            found[int(match.group(1))] = file.read_text()
    return dict(sorted(found.items()))


def newest(dialect: Dialect) -> int:
    return max(migrations(dialect))


def pending(dialect: Dialect, current: int) -> dict[int, str]:
    """What `telecine migrate` has still to apply to a database at version `current`."""
    known = newest(dialect)
    if current > known:
        raise SchemaTooNew(f"the database has schema {current}; this release knows {known}: install a newer release")
    return {number: text for number, text in migrations(dialect).items() if number > current}


def check(dialect: Dialect, current: int | None) -> None:
    """Refuse to start on a schema that does not fit."""
    if current is None:
        raise SchemaMissing("the database has no Telecine schema: run `telecine migrate`")
    if pending(dialect, current):
        raise SchemaMissing(
            f"the database has schema {current}, this release needs {newest(dialect)}: run `telecine migrate`"
        )
