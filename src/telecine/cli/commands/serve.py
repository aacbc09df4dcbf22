"""Run the server, and the keys that open it."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from telecine.cli import format
from telecine.cli.common import AsJson, Database, perform, settings_for

if TYPE_CHECKING:
    from telecine.engine.accounts.keys import KeyView
    from telecine.facts import Instant
    from telecine.wiring.server import ServerAddresses

Host = Annotated[str | None, typer.Option(help="Address to listen on.", show_default="127.0.0.1")]
Port = Annotated[int | None, typer.Option(min=0, max=65_535, help="Port; 0: any.", show_default="8484")]
Workers = Annotated[int, typer.Option(min=0, help="Tasks that the server itself works on at once; 0: none.")]
Flows = Annotated[
    list[str] | None,
    typer.Option(metavar="MODULE", help="Module or file whose flows it knows too; repeatable.", show_default=False),
]
ScopeName = Annotated[str, typer.Option("--scope", help="`admin` or `owner`; workers have `workers register`.")]
OwnerName = Annotated[str, typer.Option("--owner", help="Whose jobs and videos it opens.")]
KeyName = Annotated[str, typer.Option("--name", help="What it is called in lists.")]
Days = Annotated[
    float | None, typer.Option("--days", help="How long it is valid; none: until it is revoked.", min=0.001)
]
KeyId = Annotated[str, typer.Argument(metavar="ID", help="The key's id, as `telecine keys` shows it.")]

keys = typer.Typer(no_args_is_help=False, help="List keys; make or revoke one.")


def serve(
    *,
    host: Host = None,
    port: Port = None,
    workers: Workers = 0,
    flows: Flows = None,
    database: Database = None,
    as_json: AsJson = False,
) -> None:
    """Serve the API, the page and the fleet's duties until SIGTERM or Ctrl-C."""
    from telecine.cli.logging import log_to_stderr
    from telecine.wiring.server import run_server

    given = {"host": host, "port": port, "flows": flows or None, "log_format": "json" if as_json else None}
    settings = settings_for(database, given).settings
    log_to_stderr(settings.log_level, settings.log_format)

    def ready(serving: ServerAddresses) -> None:
        if as_json:
            format.print_line(asdict(serving))
            return
        print(f"Telecine serves on {serving.address}", flush=True)
        if serving.public_url:
            print(f"Others reach it at {serving.public_url}", flush=True)
        if serving.link:
            print(f"Log in once within 15 minutes: {serving.link}", flush=True)
        else:
            print("Log in: `telecine login` makes a link", flush=True)

    perform(run_server(settings, workers=workers, ready=ready), swift=True)


def login(database: Database = None, as_json: AsJson = False) -> None:
    """Make a link that logs an administrator in to the page, once."""

    async def make() -> None:
        from telecine.wiring import open_engine
        from telecine.wiring.sockets import reachable

        settings = settings_for(database).settings
        async with open_engine(settings, create=False) as parts:
            text = await parts.engine.keys.link()
        address = settings.public_url or reachable(settings.host, settings.port)
        if as_json:
            format.print_json({"link": f"{address}/login/{text}"})
        else:
            print(f"{address}/login/{text}")

    perform(make())


@keys.callback(invoke_without_command=True)
def _keys(context: typer.Context, database: Database = None, as_json: AsJson = False) -> None:
    if context.invoked_subcommand is None:
        list_keys(database, as_json)


@keys.command("list")
def list_keys(database: Database = None, as_json: AsJson = False) -> None:
    """List the keys, without their secrets."""

    async def look() -> None:
        from telecine.client import Client
        from telecine.wiring import open_engine

        async with open_engine(settings_for(database).settings, create=False) as parts:
            found, now = await parts.engine.keys.list(), await Client(parts).now()
        if as_json:
            format.print_json({"keys": [asdict(key) for key in found]})
            return
        if not found:
            print("No keys. Make one with `telecine keys create --owner NAME`.")
            return
        table = format.table("key", "scope", "owner", "state", "created", "last used", "expires", "name")
        for key in found:
            times = (format.ago(key.created_at, now), format.ago(key.last_used_at, now) or "never")
            expires = format.ago(key.expires_at, now) or "never"
            table.add_row(key.id, key.scope, key.owner, _key_state(key, now), *times, expires, key.name)
        format.console().print(table)

    perform(look())


def _key_state(key: KeyView, now: Instant) -> str:
    if key.revoked_at is not None:
        return "revoked"
    return "expired" if key.expires_at is not None and key.expires_at <= now else "valid"


@keys.command("create")
def create_key(
    *,
    scope: ScopeName = "owner",
    owner: OwnerName = "",
    name: KeyName = "",
    days: Days = None,
    database: Database = None,
    as_json: AsJson = False,
) -> None:
    """Make a key and print it: it is not shown again."""
    from telecine.errors import BadSpec
    from telecine.facts import DAY

    if scope not in ("admin", "owner"):
        raise BadSpec(f"a key has the scope admin or owner, not {scope!r}")
    if (scope == "owner") != bool(owner):
        raise BadSpec(
            "an owner's key opens what belongs to somebody: say whose, --owner NAME, or make one with --scope admin"
            if scope == "owner"
            else "an administrator's key opens everything: leave --owner out"
        )

    async def make() -> None:
        from telecine.engine.accounts.keys import Scope
        from telecine.wiring import open_engine

        async with open_engine(settings_for(database).settings) as parts:
            life = None if days is None else round(days * DAY)
            issued = await parts.engine.keys.issue(Scope(scope), owner=owner, name=name, life=life)
        if as_json:
            format.print_json({"id": issued.id, "key": issued.text, "expires_at": issued.expires_at})
        else:
            print(issued.text)

    perform(make())


@keys.command("revoke")
def revoke_key(key: KeyId, database: Database = None, as_json: AsJson = False) -> None:
    """Make a key worthless, at once."""

    async def drop() -> None:
        from telecine.engine.leases.remote_workers import RemoteWorkers
        from telecine.wiring import open_engine

        async with open_engine(settings_for(database).settings, create=False) as parts:
            await parts.engine.keys.revoke(key)
            await RemoteWorkers(parts.engine).shut_out(key)
        if as_json:
            format.print_json({"key": key, "revoked": True})
        else:
            print(f"Key {key} is worthless now.")

    perform(drop())
