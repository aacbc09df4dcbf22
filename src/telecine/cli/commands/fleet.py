"""Workers, flows and locks."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TextIO

import typer

from telecine.cli import format
from telecine.cli.common import AsJson, Database, perform, session, settings_for

if TYPE_CHECKING:
    from telecine.engine.queries.fleet import WorkerView
    from telecine.facts import Instant

WorkerNumber = Annotated[int, typer.Argument(metavar="ID", help="The worker's number.", show_default=False)]
FlowName = Annotated[str, typer.Argument(metavar="FLOW", help="Name of the flow.", show_default=False)]
All = Annotated[bool, typer.Option("--all", help="Also those who have left.")]

workers = typer.Typer(no_args_is_help=False, help="List workers; drain, disable, enable or revoke one.")
flows = typer.Typer(no_args_is_help=False, help="List flows; pause or resume one.")


# -- workers ---------------------------------------------------------------------------------------


@workers.callback(invoke_without_command=True)
def _workers(context: typer.Context, gone: All = False, database: Database = None, as_json: AsJson = False) -> None:
    if context.invoked_subcommand is None:
        list_workers(gone, database, as_json)


@workers.command("list")
def list_workers(gone: All = False, database: Database = None, as_json: AsJson = False) -> None:
    """List the workers: what each does, how much it has done, when it was last heard."""

    async def look() -> None:
        async with session(database) as client:
            found = await client.views.workers(gone=gone)
            now = await client.now()
        if as_json:
            format.print_json({"workers": [asdict(worker) for worker in found]})
        elif not found:
            print("No workers. Start one with `telecine worker`, or `--flows MODULE` for flows of your own.")
        else:
            _print_workers(found, now)

    perform(look())


def _print_workers(found: tuple[WorkerView, ...], now: Instant) -> None:
    table = format.table(
        "worker", "name", "state", "slots", "done", "failed", "last beat", "labels", "at work on",
        right=["worker", "slots", "done", "failed"],
    )  # fmt: skip
    for one in found:
        tasks = ", ".join(f"{t.job_id}/{t.stage}[{t.position}] {t.progress or 0:.0%}" for t in one.tasks[:3])
        more = f" and {len(one.tasks) - 3} more" if len(one.tasks) > 3 else ""
        table.add_row(
            str(one.id),
            one.name,
            format.state("revoked" if one.revoked_at else one.shown),
            f"{len(one.tasks)}/{one.slots}",
            str(one.done),
            str(one.failed),
            format.ago(one.beat_at, now),
            ", ".join(one.labels),
            tasks + more,
        )
    format.console().print(table)


def _set_mode(worker: int, word: str, database: str | None, as_json: bool) -> None:
    from telecine.facts import Mode

    mode = {"drain": Mode.DRAINING, "enable": Mode.ACTIVE}.get(word, Mode.DISABLED)

    async def ask() -> None:
        async with session(database) as client:
            await client.set_worker_mode(worker, mode, revoke=word == "revoke")
        if as_json:
            format.print_json({"worker": worker, "mode": mode, "revoked": word == "revoke"})
        else:
            print(f"Worker {worker} is {'revoked' if word == 'revoke' else mode} now.")

    perform(ask())


@workers.command()
def drain(worker: WorkerNumber, database: Database = None, as_json: AsJson = False) -> None:
    """Let a worker finish what it has and claim nothing more."""
    _set_mode(worker, "drain", database, as_json)


@workers.command()
def disable(worker: WorkerNumber, database: Database = None, as_json: AsJson = False) -> None:
    """Take a worker's tasks away, unharmed, and give it no more."""
    _set_mode(worker, "disable", database, as_json)


@workers.command()
def enable(worker: WorkerNumber, database: Database = None, as_json: AsJson = False) -> None:
    """Let a drained or disabled worker claim again."""
    _set_mode(worker, "enable", database, as_json)


@workers.command()
def revoke(worker: WorkerNumber, database: Database = None, as_json: AsJson = False) -> None:
    """Shut a worker out for good; its tasks go to others."""
    _set_mode(worker, "revoke", database, as_json)


@workers.command()
def register(
    name: Annotated[str, typer.Argument(metavar="NAME", help="What the worker is called.", show_default=False)],
    days: Annotated[float | None, typer.Option(min=0.001, help="How long its key is valid, if not for ever.")] = None,
    out: Annotated[Path | None, typer.Option(metavar="FILE", help="Put the key there, for its owner only.")] = None,
    database: Database = None,
    as_json: AsJson = False,
) -> None:
    """Make the key of a worker that works over HTTP. It is shown once."""

    async def ask() -> None:
        from telecine.engine.accounts.keys import Scope
        from telecine.errors import BadSpec
        from telecine.facts import DAY
        from telecine.wiring import open_engine

        life = None if days is None else round(days * DAY)
        with _reserved(out) as file:
            async with open_engine(settings_for(database).settings) as parts:
                keys = parts.engine.keys
                key = await keys.issue(Scope.WORKER, name=name, life=life)
                if fault := _not_written(file, key.text):
                    await keys.revoke_if_valid(key.id)
                    raise BadSpec(f"the key cannot be put into {out}: {fault}")
        shown = {"id": key.id, "name": name, "expires_at": key.expires_at}
        if as_json:
            format.print_json({**shown, "file": str(out)} if out is not None else {**shown, "key": key.text})
        elif out is not None:
            print(f"The key of {name} is in {out}: telecine worker --server URL --key-file {out.name}")
        else:
            print(key.text)

    perform(ask())


def _not_written(file: TextIO | None, text: str) -> str | None:
    """Write it down, to the disk; what went wrong."""
    try:
        if file is not None:
            file.write(f"{text}\n")
            file.flush()
    except OSError as error:
        return error.strerror
    return None


@contextmanager
def _reserved(path: Path | None) -> Iterator[TextIO | None]:
    """A new file for its owner only, made before the key is: a key that has no place must not be valid."""
    from telecine.errors import BadSpec

    if path is None:
        yield None
        return
    try:
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        raise BadSpec(f"{path} is there already: choose another file, or remove that one") from None
    except OSError as error:
        raise BadSpec(f"the key cannot be put into {path}: {error.strerror}") from error
    try:
        with os.fdopen(handle, "w") as file:
            yield file
    except BaseException:
        path.unlink(missing_ok=True)
        raise


# -- flows -----------------------------------------------------------------------------------------


@flows.callback(invoke_without_command=True)
def _flows(context: typer.Context, database: Database = None, as_json: AsJson = False) -> None:
    if context.invoked_subcommand is None:
        list_flows(database, as_json)


@flows.command("list")
def list_flows(database: Database = None, as_json: AsJson = False) -> None:
    """List the registered flows with their stages."""

    async def look() -> None:
        async with session(database) as client:
            found = await client.views.flows()
            now = await client.now()
        if as_json:
            format.print_json({"flows": [asdict(flow) for flow in found]})
            return
        if not found:
            print("No flows. A worker, or `telecine submit --flows MODULE`, registers them.")
            return
        table = format.table("flow", "version", "state", "registered", "stages", right=["version"])
        for one in found:
            stages = " → ".join(f"{stage.name}{'×' if stage.fan_out else ''}" for stage in one.stages)
            state = format.state("paused" if one.paused else "active")
            table.add_row(one.name, str(one.version), state, format.ago(one.registered_at, now), stages)
        format.console().print(table)

    perform(look())


def _pause(flow: str, paused: bool, database: str | None, as_json: bool) -> None:
    async def ask() -> None:
        async with session(database) as client:
            await (client.pause(flow) if paused else client.resume(flow))
        if as_json:
            format.print_json({"flow": flow, "paused": paused})
        else:
            print(f"Flow {flow} is paused: what runs goes on." if paused else f"Flow {flow} goes on.")

    perform(ask())


@flows.command()
def pause(flow: FlowName, database: Database = None, as_json: AsJson = False) -> None:
    """Let no task of a flow start; what runs goes on."""
    _pause(flow, True, database, as_json)


@flows.command()
def resume(flow: FlowName, database: Database = None, as_json: AsJson = False) -> None:
    """Let the tasks of a paused flow start again."""
    _pause(flow, False, database, as_json)


# -- locks -----------------------------------------------------------------------------------------


def locks(database: Database = None, as_json: AsJson = False) -> None:
    """List the named locks that are held now."""

    async def look() -> None:
        async with session(database) as client:
            found = await client.locks()
            now = await client.now()
        if as_json:
            format.print_json({"locks": [asdict(one) for one in found]})
            return
        if not found:
            print("No lock is held.")
            return
        table = format.table("lock", "held by", "token", "since", "until", right=["token"])
        for one in found:
            since, until = format.ago(one.acquired_at, now), format.ago(one.until, now)
            table.add_row(one.name, one.worker or one.holder, str(one.token), since, until)
        format.console().print(table)

    perform(look())
