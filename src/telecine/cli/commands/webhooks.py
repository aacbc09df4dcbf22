"""Who is told what becomes of jobs, and what could not be told."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from telecine.cli import format
from telecine.cli.common import AsJson, Database, perform, settings_for

if TYPE_CHECKING:
    from telecine.engine.webhooks.deliveries import Deliveries
    from telecine.engine.webhooks.subscriptions import Webhooks

WebhookNumber = Annotated[int, typer.Argument(metavar="ID", help="The webhook's number.", show_default=False)]
DeliveryNumber = Annotated[int, typer.Argument(metavar="ID", help="The delivery's number.", show_default=False)]
Address = Annotated[str, typer.Argument(metavar="URL", help="Where to: https://… or http://…", show_default=False)]
OwnerName = Annotated[str, typer.Option("--owner", help="Whose jobs it is told of.")]
Shape = Annotated[str, typer.Option("--format", help="`plain`, `slack` or `discord`.")]
Kinds = Annotated[
    list[str] | None,
    typer.Option("--kind", metavar="KIND", help="An event that it is told; repeatable. Without: how jobs end."),
]
OfJob = Annotated[int | None, typer.Option("--job", metavar="ID", help="Only of this job.", show_default=False)]

webhooks = typer.Typer(no_args_is_help=False, help="List webhooks; make, test or delete one; see what went wrong.")


@asynccontextmanager
async def _office(database: str | None) -> AsyncIterator[tuple[Webhooks, Deliveries]]:
    from telecine.wiring import open_engine
    from telecine.wiring.webhook_sending import open_webhooks

    async with open_engine(settings_for(database).settings, create=False) as parts:
        yield open_webhooks(parts), parts.engine.deliveries


@webhooks.callback(invoke_without_command=True)
def _webhooks(context: typer.Context, database: Database = None, as_json: AsJson = False) -> None:
    if context.invoked_subcommand is None:
        list_webhooks(database, as_json)


@webhooks.command("list")
def list_webhooks(database: Database = None, as_json: AsJson = False) -> None:
    """List the webhooks: where they go, and what they are told."""

    async def look() -> None:
        async with _office(database) as (known, _):
            found = (await known.list()).items
        if as_json:
            format.print_json({"webhooks": [asdict(one) for one in found]})
            return
        if not found:
            print("No webhooks. Make one with `telecine webhooks create URL --owner NAME`.")
            return
        table = format.table("webhook", "owner", "address", "format", "told", "job", "state", right=["webhook"])
        for one in found:
            job = "all" if one.job_id is None else str(one.job_id)
            told = ", ".join(kind.removeprefix("job.") for kind in one.kinds)
            table.add_row(str(one.id), one.owner, one.url, one.format, told, job, "off" if one.disabled_at else "on")
        format.console().print(table)

    perform(look())


@webhooks.command("create")
def create_webhook(
    url: Address,
    *,
    owner: OwnerName = "",
    shape: Shape = "plain",
    kinds: Kinds = None,
    job: OfJob = None,
    database: Database = None,
    as_json: AsJson = False,
) -> None:
    """Make a webhook and print the key that signs what it gets: the key is not shown again."""
    from telecine.engine.webhooks.subscriptions import FORMATS, WebhookRequest
    from telecine.errors import BadSpec

    if shape not in FORMATS:
        raise BadSpec(f"a webhook's format is {', '.join(FORMATS)}, not {shape!r}")
    wish = WebhookRequest(url=url, owner=owner, format=shape, kinds=tuple(kinds or ()), job_id=job)

    async def make() -> None:
        async with _office(database) as (known, _):
            made = await known.add(wish)
        if as_json:
            format.print_json({"webhook": asdict(made.webhook), "key": made.key})
        else:
            print(f"Webhook {made.webhook.id}. Its key, which is not shown again: {made.key}")

    perform(make())


@webhooks.command("delete")
def delete_webhook(webhook: WebhookNumber, database: Database = None, as_json: AsJson = False) -> None:
    """Tell a webhook nothing more, also nothing that waits for it."""

    async def drop() -> None:
        async with _office(database) as (known, _):
            await known.drop(webhook)
        if as_json:
            format.print_json({"webhook": webhook, "deleted": True})
        else:
            print(f"Webhook {webhook} is told nothing more.")

    perform(drop())


@webhooks.command("test")
def try_webhook(webhook: WebhookNumber, database: Database = None, as_json: AsJson = False) -> None:
    """Have a server send it a word of trial."""

    async def send() -> None:
        async with _office(database) as (known, _):
            delivery = await known.test(webhook)
        if as_json:
            format.print_json({"webhook": webhook, "delivery": delivery})
        else:
            print(f"Delivery {delivery}: a server that runs sends it; if it cannot, `telecine webhooks dead` says why.")

    perform(send())


@webhooks.command("dead")
def dead_deliveries(database: Database = None, as_json: AsJson = False) -> None:
    """List what could not be told, though it was tried as often as the settings say."""

    async def look() -> None:
        async with _office(database) as (_, mail):
            found = (await mail.list(state="dead")).items
        if as_json:
            format.print_json({"deliveries": [asdict(one) for one in found]})
            return
        if not found:
            print("Nothing: all was told, or is still tried.")
            return
        table = format.table("delivery", "webhook", "told", "job", "tries", "why", right=["delivery", "tries"])
        for one in found:
            webhook = "alerts" if one.webhook_id is None else str(one.webhook_id)
            job = "" if one.job_id is None else str(one.job_id)
            table.add_row(str(one.id), webhook, one.kind, job, str(one.tries), one.last_error or "")
        format.console().print(table)

    perform(look())


@webhooks.command("retry")
def retry_delivery(delivery: DeliveryNumber, database: Database = None, as_json: AsJson = False) -> None:
    """Try a dead delivery again, with all its tries."""

    async def again() -> None:
        async with _office(database) as (_, mail):
            await mail.retry(delivery)
        if as_json:
            format.print_json({"delivery": delivery, "retried": True})
        else:
            print(f"Delivery {delivery} is tried again by the next server that looks.")

    perform(again())


@webhooks.command("alert-key")
def alert_key(database: Database = None, as_json: AsJson = False) -> None:
    """Print the key that signs alerts."""

    async def tell() -> None:
        async with _office(database) as (known, _):
            key = await known.alert_key()
        if as_json:
            format.print_json({"key": key})
        else:
            print(key)

    perform(tell())
