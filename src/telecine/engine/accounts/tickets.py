"""Tickets: what a browser shows where it cannot send a header, once, within seconds.

The address of a stream ends up in logs and histories, so a key must never stand in it. A ticket is made with a key,
stands for it once, and opens nothing else: not the page, not another route.
"""

from __future__ import annotations

import hmac

from telecine.engine.accounts.keys import Caller, Issued, Keys, Scope, hash_of, read
from telecine.errors import KeyInvalid
from telecine.facts import SECOND, Millis
from telecine.store import Ask, Steps, Store

LIFE: Millis = 30 * SECOND


async def make(keys: Keys, caller: Caller) -> Issued:
    return await keys.issue(
        caller.scope, owner=caller.owner, name="ticket", kind="link", life=LIFE, facts={"ticket_of": caller.key_id}
    )


async def spend(store: Store, text: str) -> Caller:
    """Whose ticket it is; `KeyInvalid` if it was used before, is too old, or its key is no longer valid."""
    _, ticket_id, secret = read(text)

    def steps() -> Steps[Caller | None]:
        rows = yield Ask("key_find", {"id": ticket_id})
        if not rows or not hmac.compare_digest(hash_of(secret), rows[0]["secret_hash"]):
            return None
        spent = yield Ask("ticket_spend", {"id": ticket_id})
        return _caller(spent[0]) if spent else None

    if (caller := await store.run(steps)) is None:
        raise KeyInvalid("this ticket was used before or is too old: POST /api/v1/events/ticket makes another one")
    return caller


def _caller(row: dict[str, str]) -> Caller:
    return Caller(row["id"], row["kind"], Scope(row["scope"]), row["owner"], row["name"])
