"""Named SQL from files: `-- name: claim`, then the statement, once per dialect."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import resources
from typing import Literal

Dialect = Literal["sqlite", "postgres"]

_NAME = re.compile(r"^-- name: ([a-z_]+)$", re.MULTILINE)
_PARAM = re.compile(r"(?<![:\w]):([a-z_]+)")
# asyncpg looks at every element of an array as if it might be an array itself; so numbers, words of our own (states,
# kinds, lanes: `word[]`, never with a comma) and JSON (`line[]`: `dumps` writes no line break), none of which is ever
# empty, travel as one text.
_LISTS = re.compile(r":([a-z_]+)::(bigint|integer|smallint|boolean|real|word|line)\[\]")
_COMMENT = re.compile(r"--[^\n]*")

# The clock: the database's own, unless a test or a simulation sets `now`.
NOW = {
    "postgres": "coalesce(:now::bigint, (extract(epoch from statement_timestamp()) * 1000)::bigint)",
    "sqlite": "coalesce(:now, cast((julianday('now') - 2440587.5) * 86400000 as integer))",
}


@dataclass(frozen=True, slots=True)
class Statement:
    """`text` is ready for the driver. In SQLite a name may stand for a short script of `parts`."""

    name: str
    text: str
    params: tuple[str, ...]
    parts: tuple[str, ...]
    lists: Mapping[str, str] = field(default_factory=dict)  # what parts the items of each in its text


def parse(text: str) -> dict[str, str]:
    _, *parts = _NAME.split(text)
    return {name: body.strip() for name, body in zip(parts[::2], parts[1::2], strict=True)}


@cache
def load(dialect: Dialect) -> dict[str, Statement]:
    """All statements of a dialect, by name."""
    found: dict[str, Statement] = {}
    folder = resources.files("telecine.store") / "sql" / dialect
    for file in sorted(folder.iterdir(), key=lambda f: f.name):
        if file.name.endswith(".sql"):
            for name, body in parse(file.read_text()).items():
                if name in found:
                    raise ValueError(f"statement {name!r} is defined twice for {dialect}")
                found[name] = prepare(name, body, dialect)
    return found


def _array(found: re.Match[str]) -> str:
    name, kind = found.groups()
    comma = "chr(10)" if kind == "line" else "','"
    return f"string_to_array(:{name}::text, {comma}, '')::{'text' if kind in ('word', 'line') else kind}[]"


def prepare(name: str, body: str, dialect: Dialect) -> Statement:
    sql = _COMMENT.sub("", body).replace("{now}", NOW[dialect]).strip().rstrip(";")
    params = tuple(dict.fromkeys(_PARAM.findall(sql)))
    if dialect == "sqlite":
        return Statement(name, sql, params, tuple(part.strip() for part in sql.split(";")))
    lists = {name: "\n" if kind == "line" else "," for name, kind in _LISTS.findall(sql)}
    sql = _LISTS.sub(_array, sql)
    places = {param: f"${n}" for n, param in enumerate(params, 1)}
    sql = _PARAM.sub(lambda m: places[m.group(1)], sql)
    return Statement(name, sql, params, (sql,), lists)
