"""Letters on their way: who sends one holds it for a while, and says how it went.

A delivery is `waiting` until a receiver took it (`done`) or all tries are spent (`dead`). Whoever sends it moves its
next time to the end of a lease; if he dies, another sends it again after that, under the same name: receivers get
each letter at least once, and know a repeated one. A word about a letter counts only with the token of its last taking.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from telecine.engine.events.stream import Stream
from telecine.engine.queries.timeline import after, limited, page
from telecine.engine.queries.view_models import Page
from telecine.engine.webhooks.delivery_builder import AlertRules, Posted, post
from telecine.engine.webhooks.subscriptions import FOREVER, Webhooks, letter_name, secret_of, signing_key
from telecine.errors import BadSpec, NotFound, WrongState
from telecine.facts import DAY, Instant, Json, Millis
from telecine.json_text import storable
from telecine.store import Ask, Row, Rows, Steps, Store
from telecine.world import World

STATES = ("waiting", "done", "dead")
MAX_HOSTS = 100
ERROR_CHARS = 300
DONE_KEPT: Millis = 3 * DAY
DEAD_KEPT: Millis = 30 * DAY
PRUNED_AT_ONCE = 1_000
MAX_WAITING = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class DueDelivery:
    """A delivery that we hold, with all that is needed to send it."""

    id: int
    token: int
    # Which try this is, from 1 on.
    tries: int
    # What its receiver knows it by.
    name: str
    kind: str
    host: str
    webhook_id: int | None
    # None: an alert, whose address is in the settings, or of a webhook that was deleted.
    url: str | None
    format: str | None
    facts: dict[str, Json]
    # By the database's clock, when it was taken.
    at: Instant
    # Signs it; never shown with the rest.
    key: bytes = field(repr=False)
    disabled: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class DeliveryView:
    """A delivery as its owner sees it: of what a receiver answered, the status alone."""

    id: int
    webhook_id: int | None
    kind: str
    job_id: int | None
    state: str
    tries: int
    # When it is tried next; while it is being sent, when another would take it over.
    next_at: Instant
    last_status: int | None
    last_error: str | None
    created_at: Instant
    ended_at: Instant | None


class Deliveries:
    def __init__(self, store: Store, world: World, *, stream: Stream | None = None) -> None:
        self._store = store
        self._world = world
        self._stream = stream or Stream(store, world=world)

    # -- events into letters ---------------------------------------------------------------------

    async def collect(self, rules: AlertRules | None = None) -> Posted:
        """Turn the next events into letters, if there are any."""
        rows = await self._store.read(lambda: _asked("postman_look", {}))
        if not rows:
            fresh = self._world.secret()
            await self._store.run(lambda: secret_of(fresh))
            return Posted(more=True)
        if rows[0]["unnumbered"]:
            await self._stream.number()
        elif rows[0]["newest"] == rows[0]["seq"]:
            return Posted()
        return await self._store.run(lambda: post(rules))

    # -- sending ---------------------------------------------------------------------------------

    async def take(
        self, wanted: int, *, per_host: int, lease: Millis, limits: Mapping[str, int] | None = None
    ) -> list[DueDelivery]:
        """Up to `wanted` letters that are due, at most so many on their way to one host; ours for `lease`."""
        hosts = await self._store.read(lambda: _asked("delivery_hosts", {"lease": lease, "wanted": MAX_HOSTS}))
        free = {row["host"]: (limits or {}).get(row["host"], per_host) - row["busy"] for row in hosts}
        if not any(count > 0 for count in free.values()):
            return []
        rows, secret = await self._store.run(lambda: _taking(free, wanted, lease))
        return [_letter(row, secret) for row in rows]

    async def taken(self, letter: DueDelivery, status: int) -> bool:
        """The receiver has it; False if it was no longer ours."""
        return await self._mark(letter, "done", status, None, 0)

    async def later(self, letter: DueDelivery, status: int | None, error: str, wait: Millis) -> bool:
        return await self._mark(letter, "waiting", status, error, wait)

    async def give_up(self, letter: DueDelivery, status: int | None, error: str) -> bool:
        return await self._mark(letter, "dead", status, error, 0)

    async def switch_off(self, webhook_id: int) -> None:
        """Its receiver said that it is gone."""
        await self._store.run(lambda: _asked("webhook_disable", {"ids": [webhook_id]}))

    async def _mark(self, letter: DueDelivery, state: str, status: int | None, error: str | None, wait: Millis) -> bool:
        said = None if error is None else storable(error)[:ERROR_CHARS]
        word = {"id": letter.id, "token": letter.token, "state": state, "status": status, "error": said, "wait": wait}
        return bool(await self._store.run(lambda: _asked("delivery_mark", word)))

    # -- for people ------------------------------------------------------------------------------

    async def list(
        self,
        *,
        owner: str | None = None,
        webhook_id: int | None = None,
        state: str | None = None,
        cursor: str | None = None,
        limit: int = 100,
    ) -> Page[DeliveryView]:
        """The newest first. Alerts belong to no owner."""
        if state is not None and state not in STATES:
            raise BadSpec(f"a delivery is {', '.join(STATES)}, never {state!r}")
        [below] = after(cursor, (FOREVER,))
        where: dict[str, Any] = {"state": state, "below": below, "wanted": limited(limit) + 1}
        if webhook_id is not None:
            await Webhooks(self._store, self._world).get(webhook_id, owner=owner)
            name, where = "delivery_of_webhook", {**where, "webhook_id": webhook_id}
        elif owner is not None:
            name, where = "delivery_of_owner", {**where, "owner": owner}
        else:
            name = "delivery_all"
        rows = await self._store.read(lambda: _asked(name, where))
        return page([_view(row) for row in rows], limit, lambda one: (one.id,))

    async def retry(self, delivery_id: int, *, owner: str | None = None) -> None:
        """Try a dead one again, under the same name, with all its tries."""

        def steps() -> Steps[None]:
            rows = yield Ask("delivery_find", {"id": delivery_id})
            if not rows or (owner is not None and rows[0]["owner"] != owner):
                raise NotFound(f"there is no delivery {delivery_id}")
            if not (yield Ask("delivery_retry", {"id": delivery_id})):
                raise WrongState(f"delivery {delivery_id} is {rows[0]['state']}: only a dead one can be tried again")

        await self._store.run(steps)

    async def prune(self) -> int:
        """Forget what ended long ago, and give up webhooks that take nothing; how many were forgotten."""
        ages = {"done_age": DONE_KEPT, "dead_age": DEAD_KEPT, "wanted": PRUNED_AT_ONCE}
        total = 0
        while gone := len(await self._store.run(lambda: _asked("delivery_prune", ages))):
            total += gone
            if gone < PRUNED_AT_ONCE:
                break
        await self._store.run(_clear_heaps)
        await Webhooks(self._store, self._world).prune()
        return total


def _clear_heaps() -> Steps[None]:
    """A receiver that is dead for good must not fill the disk."""
    rows = yield Ask("delivery_heaps", {"most": MAX_WAITING})
    ids = [row["webhook_id"] for row in rows]
    if ids:
        yield Ask("webhook_disable", {"ids": ids})
        yield Ask(
            "delivery_abandon", {"ids": ids, "error": f"the webhook was switched off: {MAX_WAITING} letters waited"}
        )


def _taking(free: Mapping[str, int], wanted: int, lease: Millis) -> Steps[tuple[Rows, str]]:
    ids: list[int] = []
    for host, most in free.items():
        room = min(most, wanted - len(ids))
        if room > 0:
            rows = yield Ask("delivery_take", {"host": host, "wanted": room, "lease": lease})
            ids += [row["id"] for row in rows]
    if not ids:
        return [], ""
    [secret] = yield Ask("postman_secret", {})
    letters = yield Ask("delivery_letters", {"ids": ids})
    return letters, secret["secret"]


def _asked(name: str, params: Mapping[str, Any]) -> Steps[Sequence[Row]]:
    return list((yield Ask(name, params)))


def _letter(row: Row, secret: str) -> DueDelivery:
    same = ("id", "token", "tries", "kind", "host", "webhook_id", "url", "format")
    return DueDelivery(
        **{name: row[name] for name in same},
        name=letter_name(secret, row["id"]),
        facts={"at": row["created_at"], **json.loads(row["body"])},
        at=row["now"],
        key=signing_key(secret, row["webhook_id"]),
        disabled=row["disabled_at"] is not None,
    )


def _view(row: Row) -> DeliveryView:
    same = (
        "id",
        "webhook_id",
        "kind",
        "state",
        "tries",
        "next_at",
        "last_status",
        "last_error",
        "created_at",
        "ended_at",
    )
    job = json.loads(row["body"]).get("job") or {}
    return DeliveryView(**{name: row[name] for name in same}, job_id=job.get("id"))
