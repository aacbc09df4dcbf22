"""Run a worker."""

from __future__ import annotations

from typing import Annotated

import typer

from telecine.cli.common import AsJson, Database, perform, settings_for

Flows = Annotated[
    list[str] | None,
    typer.Option(metavar="MODULE", help="Module or file whose flows it serves too; repeatable.", show_default=False),
]
Slots = Annotated[int | None, typer.Option(min=1, help="Tasks at once, if not one per core.", show_default=False)]
Name = Annotated[str | None, typer.Option(help="Its name, if not the machine's.", show_default=False)]
Labels = Annotated[
    str | None, typer.Option(metavar="A,B", help="What it can do beyond the ordinary.", show_default=False)
]
Server = Annotated[
    str | None,
    typer.Option(metavar="URL", help="Work for this server, without a database of its own.", show_default=False),
]
KeyFile = Annotated[
    str | None, typer.Option(metavar="FILE", help="The key for that server: a file.", show_default=False)
]


def worker(
    *,
    flows: Flows = None,
    slots: Slots = None,
    name: Name = None,
    labels: Labels = None,
    server: Server = None,
    key_file: KeyFile = None,
    database: Database = None,
    as_json: AsJson = False,
) -> None:
    """Run a worker until SIGTERM or Ctrl-C: it then finishes what it has; the second signal ends it at once."""
    from telecine.cli.logging import log_to_stderr
    from telecine.worker.flow_source import source_of

    given = {
        "flows": flows or None,
        "slots": slots,
        "worker_name": name,
        "labels": labels,
        "server_url": server,
        "key_file": key_file,
        "log_format": "json" if as_json else None,
    }
    settings = settings_for(database, given).settings
    log_to_stderr(settings.log_level, settings.log_format)
    sources = [source_of(flow) for flow in settings.flows]
    if settings.server_url is not None and database is None:
        from telecine.wiring.remote import run_remote_worker

        perform(run_remote_worker(settings, sources), swift=True)
    else:
        from telecine.wiring import run_worker

        perform(run_worker(settings, sources), swift=True)
