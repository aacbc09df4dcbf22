"""Who wants to be told what: addresses, the events that each is told, and the keys that sign what they get.

A signing key is made from a secret of the database and the number of the webhook whenever it is needed. It is shown
once, to whoever makes the webhook, and stored nowhere.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args
from urllib.parse import urlsplit

from telecine.addresses import first_inside, written_out
from telecine.engine.jobs import job_rows
from telecine.engine.queries.timeline import after, limited, page
from telecine.engine.queries.view_models import Page
from telecine.errors import BadSpec, Conflict, NotFound, WrongState
from telecine.facts import DAY, Instant, Millis
from telecine.json_text import dumps
from telecine.store import Ask, Row, Steps, Store
from telecine.world import World

Format = Literal["plain", "slack", "discord"]
FORMATS: tuple[Format, ...] = get_args(Format)
ENDS = ("job.completed", "job.failed", "job.cancelled")
KINDS = ("job.created", "job.retried", *ENDS)

MAX_OF_OWNER = 50
MAX_OF_JOB = 10
# Of single jobs, all together: they go with their jobs, so this is what somebody can pile up in a month. Submits at the
# same moment do not wait for each other, and may exceed it by what they bring.
MAX_PASSING = 100_000
LONGEST_URL = 2_048
LOWEST_PORT = 1_024
WEB_PORTS = {"http": 80, "https": 443}
OF_JOB_KEPT: Millis = 30 * DAY
PRUNED_AT_ONCE = 1_000
FOREVER = 2**62


@dataclass(frozen=True, slots=True, kw_only=True)
class WebhookView:
    """An address, and what is told to it: events of these kinds, of one job or of all of its owner."""

    id: int
    owner: str
    url: str
    format: str
    kinds: tuple[str, ...]
    job_id: int | None
    created_at: Instant
    # Since when nothing is sent any more: the receiver answered that it is gone, or has taken nothing for too long.
    disabled_at: Instant | None


@dataclass(frozen=True, slots=True, kw_only=True)
class WebhookRequest:
    """What somebody wants to be told. No kinds: how jobs end."""

    url: str
    owner: str
    format: Format = "plain"
    kinds: tuple[str, ...] = ()
    job_id: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CreatedWebhook:
    """A new webhook. `key` signs what it gets; it is told once."""

    webhook: WebhookView
    key: str


class Webhooks:
    """The webhooks of one database. `private` are the places inside the operator's network that they may name."""

    def __init__(self, store: Store, world: World, *, private: Sequence[str] = ()) -> None:
        self._store = store
        self._world = world
        self._private = tuple(private)

    async def add(self, wish: WebhookRequest, *, sees: str | None = None) -> CreatedWebhook:
        """Make one. `sees` is whose jobs the caller may name; None: everybody's."""
        fresh = self._world.secret()
        return await self._store.run(lambda: self.adding(wish, fresh, sees=sees))

    def adding(self, wish: WebhookRequest, fresh: str, *, sees: str | None = None) -> Steps[CreatedWebhook]:
        """The steps of it, for a transaction that does more. `fresh` is a secret, should the database have none yet."""
        self.check(wish)
        if wish.job_id is not None:
            yield from _open_job(wish.job_id, sees)
        wanted = row_of(wish)
        yield from room_for([wanted])
        [row] = yield Ask("webhook_add", wanted)
        return CreatedWebhook(webhook=_view(row), key=shown_key(signing_key((yield from secret_of(fresh)), row["id"])))

    def check(self, wish: WebhookRequest) -> None:
        """Refuse what could never be told."""
        check_url(wish.url, self._private)
        if unknown := [kind for kind in wish.kinds if kind not in KINDS]:
            raise BadSpec(f"{unknown[0]!r} is told to nobody; choose among {', '.join(KINDS)}")

    async def list(self, *, owner: str | None = None, cursor: str | None = None, limit: int = 100) -> Page[WebhookView]:
        [below] = after(cursor, (FOREVER,))
        where = {"below": below, "wanted": limited(limit) + 1}
        name, wanted = ("webhook_all", where) if owner is None else ("webhook_list", {**where, "owner": owner})
        rows = await self._store.read(lambda: _asked(name, wanted))
        return page([_view(row) for row in rows], limit, lambda one: (one.id,))

    async def get(self, webhook_id: int, *, owner: str | None = None) -> WebhookView:
        return _view(await self._store.read(lambda: _one(webhook_id, owner)))

    async def drop(self, webhook_id: int, *, owner: str | None = None) -> None:
        """Tell it nothing more; what waits for it goes, too."""
        if not await self._store.run(lambda: _asked("webhook_drop", {"id": webhook_id, "owner": owner})):
            raise NotFound(_nothing(webhook_id))

    async def test(self, webhook_id: int, *, owner: str | None = None) -> int:
        """Send it a word of trial; the number of that delivery."""

        def steps() -> Steps[int]:
            row = yield from _one(webhook_id, owner)
            if row["disabled_at"] is not None:
                raise WrongState(f"webhook {webhook_id} is off, since its receiver is gone; make another")
            wanted = {"webhook_id": webhook_id, "owner": row["owner"], "host": host_of(row["url"])}
            added = yield Ask("delivery_test", {**wanted, "body": dumps({"webhook": webhook_id})})
            if not added:
                raise Conflict(f"a test of webhook {webhook_id} is still on its way; look at its deliveries")
            return int(added[0]["id"])

        return await self._store.run(steps)

    async def alert_key(self) -> str:
        """The key that signs alerts."""
        fresh = self._world.secret()
        return shown_key(signing_key(await self._store.run(lambda: secret_of(fresh)), None))

    async def prune(self) -> int:
        """Forget webhooks of single jobs that were told long ago; how many."""
        wanted, total = {"age": OF_JOB_KEPT, "wanted": PRUNED_AT_ONCE}, 0
        while gone := len(await self._store.run(lambda: _asked("webhook_prune", wanted))):
            total += gone
            if gone < PRUNED_AT_ONCE:
                break
        return total


def secret_of(fresh: str) -> Steps[str]:
    """The secret of this database; `fresh` if it has none yet. In two statements: another may be first."""
    rows = yield Ask("postman_secret", {})
    if not rows:
        yield Ask("postman_open", {"secret": fresh})
        rows = yield Ask("postman_secret", {})
    return str(rows[0]["secret"])


def signing_key(secret: str, webhook_id: int | None) -> bytes:
    """The key of a webhook; without one, of alerts."""
    return _derived(secret, "alerts" if webhook_id is None else f"webhook/{webhook_id}")


def letter_name(secret: str, delivery_id: int) -> str:
    """What a receiver knows a delivery by: the same at each try, and like that of no other database."""
    return f"msg_{_derived(secret, f'delivery/{delivery_id}').hex()[:32]}"


def shown_key(key: bytes) -> str:
    return f"whsec_{base64.b64encode(key).decode()}"


def _derived(secret: str, purpose: str) -> bytes:
    return hmac.new(secret.encode(), purpose.encode(), hashlib.sha256).digest()


def check_url(url: str, private: Sequence[str] = ()) -> None:
    """Refuse what could never be sent; names are looked up when something is."""
    if (
        len(url) > LONGEST_URL
        or not url.isascii()
        or not url.isprintable()
        or any(mark in url for mark in ' \\"<>^`{|}')
    ):
        raise BadSpec(
            f"a webhook's address has at most {LONGEST_URL} characters, all of them plain ASCII without blanks"
        )
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port
    except ValueError as error:
        raise BadSpec(f"the webhook's address is not understood: {error}") from error
    if parts.scheme not in WEB_PORTS or not host:
        raise BadSpec("a webhook's address begins with https:// or http:// and a host")
    if "@" in parts.netloc:
        raise BadSpec("a webhook's address carries no user and no password: check its signature instead")
    if port is not None and port < LOWEST_PORT and port not in WEB_PORTS.values():
        raise BadSpec(f"a webhook goes to port 80, 443 or one from {LOWEST_PORT} on, not to {port}")
    address = written_out(host)
    if address is not None and first_inside(host, [str(address)], private) is not None:
        raise BadSpec(f"{host} is not on the public internet; the operator can list it in allow_private_webhooks")


def host_of(url: str) -> str:
    return urlsplit(url).hostname or ""


def _open_job(job_id: int, sees: str | None) -> Steps[None]:
    """Held until the webhook stands: whatever ends the job comes after, and is told."""
    rows = yield from job_rows.hold([job_id])
    if not rows or (sees is not None and rows[0]["owner"] != sees):
        raise NotFound(f"there is no job {job_id}")
    if rows[0]["outcome"] is not None:
        raise WrongState(f"job {job_id} is {rows[0]['status']}: there is nothing left to tell; read it instead")


def room_for(wanted: Sequence[Row]) -> Steps[None]:
    """`Conflict` unless all of these, which are of one owner, may be made besides what there is.

    Those of single jobs do not take the owner's turn: the caller holds the job, or has just made it, so nobody else
    adds to it meanwhile. With a turn, all submits of an owner would wait for each other until they commit.
    """
    owner = wanted[0]["owner"]
    jobs = Counter(row["job_id"] for row in wanted if row["job_id"] is not None)
    if not jobs:
        yield Ask("webhook_turn", {"owner": owner})
        [row] = yield Ask("webhook_count", {"owner": owner})
        if row["own"] >= MAX_OF_OWNER:
            raise Conflict(f"there are {row['own']} webhooks, no more than {MAX_OF_OWNER} for one owner: delete one")
        return
    there = {row["job_id"]: row["of_job"] for row in (yield Ask("webhook_counts", {"ids": list(jobs)}))}
    for job, count in jobs.items():
        if (total := there.get(job, 0) + count) > MAX_OF_JOB:
            raise Conflict(f"job {job} would have {total} webhooks, and no job more than {MAX_OF_JOB}: name fewer")
    if (yield Ask("webhook_passing", {"owner": owner, "most": MAX_PASSING - jobs.total()})):
        most = f"{MAX_PASSING:,}"
        raise Conflict(
            f"there are {most} webhooks of single jobs, no more for one owner: make one for all of your jobs"
        )


def row_of(wish: WebhookRequest) -> dict[str, Any]:
    """A wish as it is stored."""
    plain = {"owner": wish.owner, "url": wish.url, "format": wish.format, "job_id": wish.job_id}
    return {**plain, "kinds": dumps(tuple(dict.fromkeys(wish.kinds)) or ENDS)}


def _one(webhook_id: int, owner: str | None) -> Steps[Row]:
    rows = yield Ask("webhook_find", {"id": webhook_id})
    if not rows or (owner is not None and rows[0]["owner"] != owner):
        raise NotFound(_nothing(webhook_id))
    row: Row = rows[0]
    return row


def _nothing(webhook_id: int) -> str:
    return f"there is no webhook {webhook_id}"


def _asked(name: str, params: dict[str, Any]) -> Steps[list[Row]]:
    return list((yield Ask(name, params)))


def _view(row: Row) -> WebhookView:
    same = ("id", "owner", "url", "format", "job_id", "created_at", "disabled_at")
    return WebhookView(**{name: row[name] for name in same}, kinds=tuple(json.loads(row["kinds"])))
