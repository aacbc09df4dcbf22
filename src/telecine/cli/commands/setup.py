"""Commands for whoever runs Telecine: migrate, config."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from telecine.cli import format
from telecine.cli.common import AsJson, Database, perform, settings_for

if TYPE_CHECKING:
    from rich.text import Text

# Below this width four columns leave no room for what a setting is for.
TABLE_WIDTH = 160
INDENT = 4


def migrate(database: Database = None, as_json: AsJson = False) -> None:
    """Bring the database to this release's schema; safe to repeat."""
    perform(_migrate(database, as_json))


async def _migrate(database: str | None, as_json: bool) -> None:
    from telecine.wiring import migrate_database

    before, after = await migrate_database(settings_for(database).settings)
    if as_json:
        format.print_json({"before": before, "after": after, "changed": before != after})
    elif before == after:
        print(f"The database is up to date (schema {after}).")
    else:
        print(f"The database was brought from schema {before or 'none'} to {after}.")


def config(database: Database = None, as_json: AsJson = False) -> None:
    """Show every setting: its value, where it comes from, what it is for. Passwords are hidden."""
    from telecine.settings import PREFIX, Settings

    loaded = settings_for(database)
    rows = [
        {
            "name": name,
            "value": loaded.settings.shown(name),
            "source": loaded.sources[name],
            "variable": f"{PREFIX}{name.upper()}",
            "description": field.description,
        }
        for name, field in Settings.model_fields.items()
    ]
    if as_json:
        format.print_json({"settings": rows})
        return
    if format.console().width >= TABLE_WIDTH:
        _print_table(rows)
    else:
        _print_pairs(rows)


def _print_table(rows: Sequence[Mapping[str, Any]]) -> None:
    table = format.table("setting", "value", "source", "what it is for")
    table.columns[0].min_width = max(len(row["name"]) for row in rows)
    table.columns[1].no_wrap, table.columns[1].overflow = False, "fold"
    for row in rows:
        table.add_row(row["name"], _value(row), _source(row), row["description"])
    format.console().print(table)


def _print_pairs(rows: Sequence[Mapping[str, Any]]) -> None:
    """Two lines for each: what it is set to; by whom, and what it is for."""
    from rich.padding import Padding
    from rich.text import Text

    for row in rows:
        format.console().print(Text.assemble((row["name"], "bold"), "  ", _value(row)), overflow="fold")
        below = Text.assemble(_source(row), ": ", row["description"])
        format.console().print(Padding(below, (0, 0, 0, INDENT)))


def _value(row: Mapping[str, Any]) -> str:
    return ", ".join(row["value"]) if isinstance(row["value"], tuple) else str(row["value"])


def _source(row: Mapping[str, Any]) -> Text:
    from rich.text import Text

    source = row["source"]
    return format.dim(source) if source == "default" else Text(source)
