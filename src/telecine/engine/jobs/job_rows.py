"""The rows of jobs, for all code that changes them. The only module of the engine that knows jobs without rows.

On PostgreSQL a job that is one plain task is stored as that task alone: docs/decisions/0015-jobs-without-rows.md lists
every other place that knows it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from telecine.store import Ask, Rows, Steps


def storage(*, is_plain: bool, has_one_task: bool) -> Mapping[str, Any]:
    """The parameter of `submit` that says how new jobs are stored."""
    return {"rowless": is_plain and has_one_task}


def hold(ids: Sequence[int]) -> Steps[Rows]:
    """Lock these jobs, in the order of their ids, and read them as they are now.

    PostgreSQL keeps a job that is one plain task as that task alone, and nobody could tell from it that it was
    cancelled, tried again or moved. So it gets its rows first, in a statement of its own: the one that locks would
    not see them yet.
    """
    rows: Rows
    if len(ids) == 1:  # mostly it has rows; of several, all tasks must be locked before the first job
        rows = yield Ask("job_hold", {"ids": ids})
        if rows:
            return rows
    yield Ask("job_row_add", {"ids": ids})
    rows = yield Ask("job_hold", {"ids": ids})
    return rows


def hold_of(tasks: Rows) -> Steps[Rows]:
    """The same for the jobs of tasks that are held and say whether their job has a row: mostly there is one to lock."""
    ids = sorted({row["job_id"] for row in tasks})
    if any(row["rowless"] for row in tasks):
        return (yield from hold(ids))
    rows: Rows = yield Ask("job_hold", {"ids": ids})
    return rows
