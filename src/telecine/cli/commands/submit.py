"""Submit a job."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from telecine.cli import format
from telecine.cli.common import AsJson, Database, perform, session, settings_for
from telecine.cli.parse import moment_of, spec_of, subject_of

if TYPE_CHECKING:
    from telecine.client import Client

Flow = Annotated[str, typer.Argument(metavar="FLOW", help="Name of the flow.", show_default=False)]
Spec = Annotated[
    str | None,
    typer.Argument(metavar="SPEC", help="JSON, @FILE, or - for standard input.", show_default=False),
]
Priority = Annotated[str, typer.Option(help="0 to 10, or critical, high, normal, low, background; higher goes first.")]
RunAt = Annotated[
    str | None, typer.Option("--run-at", metavar="WHEN", help="Earliest start: +10m, or a date and time in UTC.")
]
After = Annotated[list[int] | None, typer.Option(metavar="ID", help="Wait until this job has completed; repeatable.")]
Key = Annotated[str | None, typer.Option(help="A repeat with the same key returns the first job.")]
DedupeKey = Annotated[str | None, typer.Option("--dedupe-key", help="Join an unfinished job with this key.")]
Subject = Annotated[str | None, typer.Option(metavar="KIND/ID", help="What the job is about.")]
Owner = Annotated[str, typer.Option(help="Whose job it is.")]
Skip = Annotated[list[str] | None, typer.Option(metavar="STAGE", help="Do not run this stage; repeatable.")]
Flows = Annotated[
    list[str] | None, typer.Option(metavar="MODULE", help="Register the flows of this Python module first; repeatable.")
]
Wait = Annotated[bool, typer.Option("--wait", help="Stay until the job has ended; exit 5 if it did not complete.")]


def submit(  # each option is a parameter: that is typer's way
    flow: Flow,
    spec: Spec = None,
    *,
    priority: Priority = "normal",
    run_at: RunAt = None,
    after: After = None,
    key: Key = None,
    dedupe_key: DedupeKey = None,
    subject: Subject = None,
    owner: Owner = "",
    skip: Skip = None,
    flows: Flows = None,
    wait: Wait = False,
    database: Database = None,
    as_json: AsJson = False,
) -> None:
    """Submit a job; it is durable when this returns."""
    wanted: dict[str, Any] = {
        "spec": spec_of(spec),
        "priority": priority,
        "after": after or (),
        "key": key,
        "dedupe_key": dedupe_key,
        "subject": subject_of(subject),
        "owner": owner,
        "skip": skip or (),
    }
    perform(_submit(flow, wanted, run_at, flows or [], database=database, as_json=as_json, wait=wait))


async def _submit(
    flow: str,
    wanted: dict[str, Any],
    run_at: str | None,
    modules: list[str],
    *,
    database: str | None,
    as_json: bool,
    wait: bool,
) -> int | None:
    if not modules:
        from telecine.wiring.apps import check_spec

        # A spec that could only fail is refused here, as over HTTP, before it is a job.
        check_spec(flow, wanted["spec"], settings_for(database).settings)
    async with session(database, create=True) as client:
        await _register(client, modules)
        when = None if run_at is None else moment_of(run_at, await client.now())
        submitted = await client.submit(flow, run_at=when, **wanted)
        if as_json:
            format.print_line({"job_id": submitted.job_id, "created": submitted.created})
        elif submitted.created:
            print(f"Submitted job {submitted.job_id}.")
        else:
            print(f"Job {submitted.job_id} was already there.")
        if wait:
            from telecine.cli.commands.watch import follow

            return await follow(client, submitted.job_id, as_json=as_json)
    return None


async def _register(client: Client, modules: list[str]) -> None:
    if modules:
        from telecine.worker.flow_source import load_flows, source_of

        for known in (flow for module in modules for flow in load_flows(source_of(module))):
            await client.register(known)
