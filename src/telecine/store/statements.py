"""Named SQL from files: `-- name: claim`, then the statement, once per dialect."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Literal

Dialect = Literal["sqlite", "postgres"]

_NAME = re.compile(r"^-- name: ([a-z_]+)$", re.MULTILINE)
_PARAM = re.compile(r"(?<![:\w]):([a-z_]+)")
# asyncpg looks at every element of an array as if it might be an array itself; so numbers, and words of our own
# (states, kinds, lanes: `word[]`, never with a comma, never empty), travel as one text.
_LISTS = re.compile(r":([a-z_]+)::(bigint|integer|smallint|boolean|word)\[\]")
_COMMENT = re.compile(r"--[^\n]*")
# What stands behind `--+` is a comment in one statement and text in its variant, which a comment names:
# `-- With --+ it is claim_hinted: why`.
_VARIANT = re.compile(r"^-- With --\+ it is ([a-z_]+):", re.MULTILINE)
_MORE = "--+ "

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
    lists: frozenset[str] = frozenset()


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
                if variant := _VARIANT.search(body):
                    whole = _COMMENT.sub(_only_more, body)
                    found[variant[1]] = prepare(variant[1], whole, dialect)
                if name in found:
                    raise ValueError(f"statement {name!r} is defined twice for {dialect}")
                found[name] = prepare(name, body, dialect)
    return found


def _only_more(comment: re.Match[str]) -> str:
    return comment[0].replace(_MORE, "") if comment[0].startswith(_MORE) else ""


def prepare(name: str, body: str, dialect: Dialect) -> Statement:
    sql = _COMMENT.sub("", body).replace("{now}", NOW[dialect]).strip().rstrip(";")
    params = tuple(dict.fromkeys(_PARAM.findall(sql)))
    if dialect == "sqlite":
        return Statement(name, sql, params, tuple(part.strip() for part in sql.split(";")))
    lists = frozenset(match[0] for match in _LISTS.findall(sql))
    sql = _LISTS.sub(r"string_to_array(:\1::text, ',', '')::\2[]", sql).replace("::word[]", "::text[]")
    places = {param: f"${n}" for n, param in enumerate(params, 1)}
    sql = _PARAM.sub(lambda m: places[m.group(1)], sql)
    return Statement(name, sql, params, (sql,), lists)
