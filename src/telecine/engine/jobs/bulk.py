"""The same for many jobs: each in a transaction of its own, so many per call and no more.

What fails for one job is told with its id and does not stop the others. A call that was broken off may be repeated:
what was changed already is not changed twice.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from telecine.engine.queries.ownership import OwnedJob, no_job, owners
from telecine.errors import StoreError, TelecineError
from telecine.store import Store

# SQLite commits together what waits together, PostgreSQL has a few connections: more at once would only wait.
AT_ONCE = 8
Act = Callable[[OwnedJob], Awaitable[bool]]


@dataclass(frozen=True, slots=True)
class BulkRefusal:
    """Why one job was left as it was."""

    id: int
    code: str
    detail: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Sum:
    """`matched` jobs were looked at, `changed` ones are not as before. The rest was refused, or was so already.

    With `next`: there may be more; ask again with it as the cursor.
    """

    matched: int
    changed: int
    refused: tuple[BulkRefusal, ...]
    next: str | None = None


async def on_each(store: Store, ids: Sequence[int], sees: str | None, act: Act) -> Sum:
    """Do it to each of these jobs that is there and belongs to `sees` (None: whoever it belongs to)."""
    wanted = list(dict.fromkeys(ids))
    known = await store.read(lambda: owners(wanted, sees)) if wanted else {}
    turns = asyncio.Semaphore(AT_ONCE)

    async def one(job_id: int) -> bool | BulkRefusal:
        async with turns:
            try:
                if job_id not in known:
                    raise no_job(job_id)
                known[job_id].must_be_here()
                return await act(known[job_id])
            except StoreError:
                raise  # nothing is known about this one, nor would the others fare better
            except TelecineError as error:
                return BulkRefusal(job_id, error.code, str(error))

    results = await asyncio.gather(*(one(job_id) for job_id in wanted))
    return Sum(
        matched=len(known),
        changed=sum(result is True for result in results),
        refused=tuple(result for result in results if isinstance(result, BulkRefusal)),
    )
