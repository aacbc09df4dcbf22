"""Two transactions at once, statement by statement, in every order: whatever the order, nothing is lost or done twice.

Each scene brings forth a situation and names what may be said in it; each word is tried against the scene's own
(`MAIN`), and all pairs in the proof. After each order everything derived is recomputed (`audit`), every lease has ended
once, and the rest of the work can be done.
"""

from collections.abc import Callable, Iterator
from itertools import combinations_with_replacement
from typing import Any

import pytest

from telecine.facts import (
    LEASE,
    MINUTE,
)
from tests.support.engine_fixture import Bed
from tests.support.interleaver import Outcome, sequential, stepper
from tests.support.race_cases import FILM, LONE, SCENES, Situation
from tests.support.scene import ROWS
from tests.support.thorough import thorough

TABLES = [
    *("job", "stage", "task", "attempt", "event", "artifact", "idempotency"),
    *("job_after", "subject", "subject_version", "job_log"),
]
# What a scene is about, and who stops it: these lock the most. Against them every other word is said.
MAIN = {
    "a piece is held": ("done", "cancel"),
    "the last two pieces are held": ("done", "cancel"),
    "a job winds down": ("resume", "cancel"),
    "its last task runs while a job winds down": ("resume", "cancel"),
    "a lone task is held": ("lone", "cancel"),
    "two jobs are held": ("both, one way", "cancel"),
    "a task is ready": ("claim", "cancel"),
    "a task is ready whose job has rows": ("claim", "cancel"),
    "a task is due": ("unpark", "cancel"),
    "a job has failed": ("retry", "cancel"),
    "others have ended": ("one", "cancel"),
    "somebody submits": ("with a key", "with a dedupe key"),
}
SAVED = [*(f"{table}_row" if table in ROWS else table for table in TABLES), "worker", "flow", "pulse"]


def pairs() -> Iterator[Any]:
    for scene, (_, words) in SCENES.items():
        for one, other in combinations_with_replacement(words, 2):
            marks = () if {one, other} & set(MAIN[scene]) else (thorough,)
            yield pytest.param(scene, one, other, id=f"{scene}: {one} | {other}", marks=marks)


@pytest.mark.parametrize(("scene", "one", "other"), list(pairs()))
async def test_in_every_order(bed: Bed, scene: str, one: str, other: str) -> None:
    await bed.enact(FILM, LONE)
    bed.bob = await bed.enlist("bob")
    bring, words = SCENES[scene]
    seen: set[object] = set()

    async def look(outcome: Outcome) -> None:
        check(outcome, one, other)
        if (rows := await all_rows(bed)) in seen:
            return  # all that is audited is as it was after an earlier order
        seen.add(rows)
        await bed.audited()
        if (ending := await snapshot(bed)) not in seen:
            seen.add(ending)
            await wind_up(bed)

    if not bed.is_postgres:
        if "lone" in (one, other):
            return  # the short way is for databases that are far away
        for order in ("ab", "ba"):
            situation = await fresh(bed, bring)
            await look(await sequential(bed, words[one](situation), words[other](situation), order))
        return
    async with stepper(bed) as steps:
        situation = await fresh(bed, bring)
        saved, schedules, orders = await save(bed), [""], 0
        while schedules:
            await restore(bed, saved)
            outcome, others = await steps.run(words[one](situation), words[other](situation), schedules.pop())
            await look(outcome)
            schedules += others
            orders += 1
        assert orders <= 250, f"{orders} orders: the scene is too large"


async def fresh(bed: Bed, bring: Callable[[Bed], Any]) -> Situation:
    for table in TABLES:
        await bed.sql(f"delete from {bed.table(table)}")
    await reset(bed)
    situation: Situation = await bring(bed)
    await bed.sql(f"update pulse set at = {bed.now}")
    return situation


async def reset(bed: Bed) -> None:
    """Every worker may work, no flow is paused."""
    await bed.sql("update worker set mode = 'active', gone_at = null")
    await bed.sql(f"update flow set paused = {'false' if bed.is_postgres else 0}")


async def save(bed: Bed) -> int:
    """Put the situation aside, so that every order begins with the very same rows. Says what time it is."""
    made = (f"create unlogged table if not exists saved_{table} as select * from {table} limit 0" for table in SAVED)
    copies = (f"insert into saved_{table} select * from {table}" for table in SAVED)
    await script(bed, *made, *(f"delete from saved_{table}" for table in SAVED), *copies)
    return bed.now


async def restore(bed: Bed, now: int) -> None:
    bed.store.now = now
    copies = (f"insert into {table} overriding system value select * from saved_{table}" for table in SAVED)
    await script(bed, *(f"delete from {table}" for table in SAVED), *copies)


async def script(bed: Bed, *statements: str) -> None:
    async with bed.store.connections.borrow() as connection:
        await connection.execute(";".join(statements))


async def all_rows(bed: Bed) -> object:
    """Whatever the audit looks at, to the last column."""
    tables = ("flow", "job", "stage", "task", "attempt")
    if not bed.is_postgres:
        return object()  # two orders only
    # Each under a name of its own: of columns with the same name a row has only the last.
    each = (f"(select string_agg(r::text, ';' order by r::text) from {table} r) as {table}" for table in tables)
    [rows] = await bed.sql(f"select {', '.join(each)}")
    assert set(rows) == set(tables)
    return str(rows)


async def snapshot(bed: Bed) -> object:
    """The situation without times: two orders that end alike have the same."""
    jobs = await bed.sql(
        "select status, cancel_asked, failing, waits, generation, warnings, priority from job order by id"
    )
    tasks = await bed.sql(
        "select stage, position, state, parked, token, tries, losses, releases, kept, best from task order by id"
    )
    return str(jobs), str(tasks)


def check(outcome: Outcome, one: str, other: str) -> None:
    """What the two answers must say together."""
    first, last = (one, other) if outcome.ended == "ab" else (other, one)
    if first in ("cancel", "drain") and last == "claim":
        rows = outcome.second if outcome.ended == "ab" else outcome.first
        granted = [row["id"] for row in rows if not row["halted"]]
        assert granted == [], f"{outcome.order}: granted after the {first} was acknowledged"
    answers = [outcome.first, outcome.second]
    heard = [
        answer
        for settled in answers
        if hasattr(settled, "answers")
        for answer in settled.answers
        if answer.accepted and not answer.repeated
    ]
    heard += [answer for settled in answers if isinstance(settled, dict) for answer in settled.values()]
    leases = [(answer.task_id, answer.token) for answer in heard]
    assert len(leases) == len(set(leases)), f"{outcome.order}: a lease ended twice"


async def wind_up(bed: Bed) -> None:
    """All the rest can be done: leases that are held run out, what waits is claimed, every job ends."""
    await reset(bed)
    ann = bed.worker
    for _ in range(3):
        bed.pass_time(LEASE // 2)
        await bed.engine.sweep()
    bed.worker = await bed.enlist("ann")
    for _ in range(5):
        await bed.run_all()
        bed.pass_time(MINUTE)
        await bed.sql(f"update pulse set at = {bed.now - 2_000}")
        await bed.engine.sweep()
        if not await bed.count("job", "outcome is null"):
            break
    bed.worker = ann
    left = await bed.count("job", "outcome is null")
    assert left == 0, f"{left} jobs never ended"
    await bed.audited()
