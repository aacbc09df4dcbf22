"""Jobs that are submitted together with whoever shall be told of them: in one transaction, both or neither.

A submit that finds its job there already, by its key or as an unfinished twin, finds its webhook there, too: one of
the same owner with the same address, shape and kinds is the same, and so is the key that signs what it gets.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from telecine.engine.jobs import job_rows
from telecine.engine.jobs.submit import Submission, Submitted, Wanted, submit
from telecine.engine.webhooks.subscriptions import (
    WebhookRequest,
    Webhooks,
    room_for,
    row_of,
    secret_of,
    shown_key,
    signing_key,
)
from telecine.json_text import dumps
from telecine.store import Ask, Row, Rows, Steps, Write

if TYPE_CHECKING:
    from telecine.engine import Engine


@dataclass(frozen=True, slots=True)
class Hook:
    """The webhook of a submitted job, and the key that signs what it gets."""

    id: int
    key: str


@dataclass(frozen=True, slots=True)
class Hooked:
    """A submitted job. No webhook: nobody wants to be told, or the job had ended before."""

    submitted: Submitted
    webhook: Hook | None = None


Told = Sequence[tuple[Submission, WebhookRequest | None]]
Mark = tuple[int, str, str, str, str]


async def submit_telling(engine: Engine, webhooks: Webhooks, wanted: Told) -> list[Hooked]:
    """Submit jobs, each with who shall be told of it, all of one caller: all or none."""
    wishes = [wish for _, wish in wanted]
    for wish in wishes:
        if wish is not None:
            webhooks.check(wish)
    told = [one._replace(told="" if wish is None else dumps(row_of(wish))) for one, wish in wanted]
    known = await engine.jobs.with_flows(told)
    fresh = engine.world.secret()
    hooked = await engine._store.run(lambda: _steps(known, wishes, fresh))
    engine.bell.ring({lane for one in hooked[:1] for lane in one.submitted.lanes})
    return hooked


def _steps(known: Wanted, wishes: Sequence[WebhookRequest | None], fresh: str) -> Steps[list[Hooked]]:
    secret = yield from secret_of(fresh)  # first: with it the postman begins to read, also of these jobs
    made = yield from submit(known)
    wanted = [
        None if wish is None else row_of(replace(wish, job_id=one.job_id))
        for one, wish in zip(made, wishes, strict=True)
    ]
    standing = yield from _standing(made, [row for row in wanted if row is not None])
    hooks = [None if row is None else _hook(standing.get(_mark(row)), secret) for row in wanted]
    return [Hooked(one, hook) for one, hook in zip(made, hooks, strict=True)]


def _standing(made: Sequence[Submitted], rows: Sequence[Row]) -> Steps[dict[Mark, int]]:
    """The webhooks that were there or are made now, by what they are; none for jobs that have ended."""
    wanted = {row["job_id"] for row in rows}
    before = sorted(int(one.job_id) for one in made if not one.created and one.job_id in wanted)
    ended: set[int] = set()
    found: dict[Mark, int] = {}
    if before:
        # Held until the webhook stands: whatever ends the job comes after, and is told.
        held = yield from job_rows.hold(before)
        ended = set(before) - {row["id"] for row in held if row["outcome"] is None}
        found = _numbers((yield Ask("webhook_of_jobs", {"ids": before})))
    missing = {_mark(row): row for row in rows if row["job_id"] not in ended and _mark(row) not in found}
    if missing:
        rows = list(missing.values())
        yield from room_for(rows)
        yield Write("webhook_put", {"webhooks": rows})
        found = _numbers((yield Ask("webhook_of_jobs", {"ids": sorted(wanted)})))
    return found


def _numbers(rows: Rows) -> dict[Mark, int]:
    """The oldest of those that are alike."""
    return {_mark(row): row["id"] for row in reversed(rows)}


def _mark(row: Row) -> Mark:
    kinds = dumps(json.loads(row["kinds"]))
    return row["job_id"], row["owner"], row["url"], row["format"], kinds


def _hook(number: int | None, secret: str) -> Hook | None:
    return None if number is None else Hook(number, shown_key(signing_key(secret, number)))
