"""Commands for whoever runs Telecine: migrate, config."""

from __future__ import annotations

from telecine.cli import show
from telecine.cli.common import AsJson, Database, perform, settings_for


def migrate(database: Database = None, as_json: AsJson = False) -> None:
    """Bring the database to this release's schema; safe to repeat."""
    perform(_migrate(database, as_json))


async def _migrate(database: str | None, as_json: bool) -> None:
    from telecine.wiring import migrate_database

    before, after = await migrate_database(settings_for(database).settings)
    if as_json:
        show.print_json({"before": before, "after": after, "changed": before != after})
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
        show.print_json({"settings": rows})
        return
    table = show.table("setting", "value", "source", "what it is for")
    for row in rows:
        value = ", ".join(row["value"]) if isinstance(row["value"], tuple) else str(row["value"])
        source = row["source"]
        table.add_row(row["name"], value, show.dim(source) if source == "default" else source, row["description"])
    show.console().print(table)
