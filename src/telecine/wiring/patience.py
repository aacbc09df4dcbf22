"""Programs that stay (workers, servers) wait for their database at the start, as they do when it goes away later."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from telecine.engine.maintenance.background import OutageLog
from telecine.errors import Unreachable
from telecine.store import Store
from telecine.store.open import bring_up_to_date, check_schema, dialect_of
from telecine.world import World

FIRST_PAUSE, MAX_PAUSE = 0.2, 5.0
DUTY = "start"
# SQLSTATE classes that no waiting cures: the user, the password or the database of the address is wrong.
MISCONFIGURED = ("28", "3D")

T = TypeVar("T")


async def settle_schema(store: Store, url: str, world: World, *, is_patient: bool) -> None:
    """Migrate an embedded SQLite database; refuse a PostgreSQL whose schema is not the one of this release."""
    if dialect_of(url) == "sqlite":
        await bring_up_to_date(store, url)
    elif is_patient:
        await wait_for(lambda: check_schema(store, url), world)
    else:
        await check_schema(store, url)


async def wait_for(ask: Callable[[], Awaitable[T]], world: World) -> T:
    """Ask until the database answers; one line when it does not, one a minute while that lasts, one when it is over."""
    duties, pause = OutageLog(world.mono), FIRST_PAUSE
    while True:
        try:
            answer = await ask()
        except Unreachable as error:
            if _is_misconfigured(error):
                raise
            duties.lost(DUTY, error)
        else:
            duties.found(DUTY)
            return answer
        await asyncio.sleep(pause * (0.5 + world.dice.random()))
        pause = min(2 * pause, MAX_PAUSE)


def _is_misconfigured(error: Unreachable) -> bool:
    cause = error.__cause__
    state = str(getattr(cause, "sqlstate", None) or "")
    return state[:2] in MISCONFIGURED or isinstance(cause, ValueError)
