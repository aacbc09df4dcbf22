"""Named locks: one holder, a token that only grows, and a body that ends when its lock does.

Each story is played with the locks of the database alone, and with Redis before them.
"""

import asyncio
from contextlib import suppress
from functools import partial

import pytest

from telecine.errors import BadSpec, LockHeld, LockLost, Unreachable
from telecine.facts import SECOND, Millis
from telecine.locks import HeldLock, Locks
from telecine.locks.guard import lock
from telecine.locks.sql import SqlLocks
from telecine.store import ask
from telecine.world import World
from tests.support.lock_backends import kept, locks_of
from tests.support.scene import Scene, played

TTL = 30 * SECOND
SOON = 300  # for stories in which real time must pass
# For the story in which nothing may be lost: a lock that is not refreshed within 0.57 of its time to live is given up,
# and with SOON that is 170 ms, which one write to a busy disk may take.
UNHURRIED = 1_500
PATIENCE = 10.0


async def taken(locks: Locks, name: str = "project:1", ttl: Millis = TTL, worker: str = "ann") -> HeldLock:
    held = await locks.try_acquire(name, ttl, worker)
    assert held is not None
    return held


@kept
async def test_a_held_lock_is_refused_to_everybody_also_to_the_same_worker(scene: Scene) -> None:
    locks = locks_of(scene)
    held = await taken(locks)

    assert await locks.try_acquire("project:1", TTL, "bob") is None
    assert await locks.try_acquire("project:1", TTL, "ann") is None

    assert await locks.holder("project:1") == held
    assert (held.worker, held.token, held.until) == ("ann", 1, scene.now + TTL)


@kept
async def test_a_released_lock_is_free_and_its_token_goes_on(scene: Scene) -> None:
    locks = locks_of(scene)
    first = await taken(locks)

    assert await locks.release(first)

    assert await locks.holder("project:1") is None
    assert (await taken(locks, worker="bob")).token == 2


@kept
async def test_a_lock_that_ran_out_can_be_taken_over_and_its_old_holder_can_do_nothing(scene: Scene) -> None:
    locks = locks_of(scene)
    late = await taken(locks)
    scene.pass_time(TTL)

    current = await taken(locks, worker="bob")

    assert current.token == late.token + 1
    assert await locks.refresh(late, TTL) is None
    assert not await locks.release(late)
    assert await locks.holder("project:1") == current


@kept
async def test_a_lock_that_ran_out_is_not_refreshed_although_nobody_took_it(scene: Scene) -> None:
    locks = locks_of(scene)
    late = await taken(locks)

    scene.pass_time(TTL)

    assert await locks.holder("project:1") is None
    assert await locks.refresh(late, TTL) is None
    assert not await locks.release(late)


@kept
async def test_a_refresh_prolongs_from_now_and_keeps_the_token(scene: Scene) -> None:
    locks = locks_of(scene)
    held = await taken(locks)
    scene.pass_time(TTL - 1)

    renewed = await locks.refresh(held, TTL)

    assert renewed is not None
    assert (renewed.token, renewed.until) == (held.token, scene.now + TTL)


@kept
async def test_the_list_shows_what_is_held_now(scene: Scene) -> None:
    locks = locks_of(scene)
    await taken(locks, "c", ttl=1)
    await locks.release(await taken(locks, "b"))
    kept = await taken(locks, "a")
    scene.pass_time(1)

    assert await locks.list() == [kept]


@kept
async def test_of_many_who_ask_at_once_one_gets_the_lock(scene: Scene) -> None:
    locks = locks_of(scene)

    for round_ in range(10):
        got = await asyncio.gather(*(locks.try_acquire("project:1", TTL, f"w{n}") for n in range(20)))

        [winner] = [held for held in got if held is not None]
        assert winner.token == round_ + 1
        assert await locks.release(winner)


@kept
async def test_a_lock_needs_a_name_and_a_time(scene: Scene) -> None:
    locks = locks_of(scene)

    with pytest.raises(BadSpec):
        await locks.try_acquire("", TTL)
    with pytest.raises(BadSpec):
        await locks.try_acquire("a", 0)


# -- The context manager: real time passes here ------------------------------------------------------


@kept
async def test_a_body_keeps_its_lock_beyond_the_time_to_live(scene: Scene) -> None:
    scene.store.now = None
    locks = locks_of(scene)

    async with lock(locks, "project:1", UNHURRIED) as held, asyncio.timeout(PATIENCE):
        while (current := await locks.holder("project:1")) is not None and current.until < held.until + UNHURRIED:
            await asyncio.sleep(0.01)

    assert current is not None
    assert current.token == held.token
    assert await locks.holder("project:1") is None


@kept
async def test_a_second_body_is_refused_or_waits_its_turn(scene: Scene) -> None:
    scene.store.now = None
    locks = locks_of(scene)
    waiting = asyncio.Event()

    async def second() -> int:
        waiting.set()
        async with lock(locks, "project:1", TTL, worker="bob", patience=PATIENCE) as held:
            return held.token

    async with lock(locks, "project:1", TTL, worker="ann"):
        with pytest.raises(LockHeld, match="'project:1' is held by ann"):
            async with lock(locks, "project:1", TTL, worker="bob"):
                pytest.fail("two holders")
        turn = asyncio.create_task(second())
        await waiting.wait()

    assert await asyncio.wait_for(turn, PATIENCE) == 2


@kept
async def test_a_body_whose_lock_was_taken_over_is_cancelled(scene: Scene) -> None:
    scene.store.now = None
    locks = locks_of(scene)
    heard = []

    async def work() -> None:
        async with lock(locks, "project:1", SOON):
            try:
                # On a busy machine it is heard of before the answer is here.
                await scene.sql("update lock set holder = 'thief', token = 2")
                async with asyncio.timeout(PATIENCE):
                    await asyncio.Event().wait()
            except asyncio.CancelledError as error:
                heard.append(error)
                raise

    with pytest.raises(LockLost, match=r"'project:1' \(token 1\)"):
        await work()

    task = asyncio.current_task()
    assert heard
    assert task is not None
    assert task.cancelling() == 0
    [row] = await scene.sql("select holder from lock")
    assert row["holder"] == "thief", "release takes only what is one's own"


@kept
async def test_a_body_that_swallows_the_cancel_still_hears_that_the_lock_was_lost(scene: Scene) -> None:
    scene.store.now = None
    locks = locks_of(scene)

    async def work() -> None:
        async with lock(locks, "project:1", SOON):
            await scene.sql("update lock set holder = 'thief'")
            with suppress(asyncio.CancelledError):
                await asyncio.wait_for(asyncio.Event().wait(), PATIENCE)

    with pytest.raises(LockLost):
        await work()


@kept
async def test_somebody_elses_cancel_stays_a_cancel_and_frees_the_lock(scene: Scene) -> None:
    locks = locks_of(scene)
    inside = asyncio.Event()

    async def work() -> None:
        async with lock(locks, "project:1", TTL):
            inside.set()
            await asyncio.Event().wait()

    task = asyncio.create_task(work())
    await inside.wait()
    task.cancel()

    with pytest.raises(asyncio.CancelledError):
        await task
    assert await locks.holder("project:1") is None


@played
async def test_a_body_ends_although_the_cancel_of_its_refresh_was_lost(scene: Scene) -> None:
    """As it is in `asyncio.wait_for` of Python 3.11, by which the client of Redis sends."""
    scene.store.now = None
    asked = asyncio.Event()

    class Lossy(SqlLocks):
        async def refresh(self, held: HeldLock, ttl: Millis) -> HeldLock | None:
            renewed = await super().refresh(held, ttl)
            asked.set()
            with suppress(asyncio.CancelledError):
                await asyncio.Event().wait()
            return renewed

    locks = Lossy(partial(ask, scene.store), new_id=World().new_id)
    async with asyncio.timeout(PATIENCE), lock(locks, "project:1", SOON):
        await asked.wait()

    assert await locks.holder("project:1") is None


@kept
async def test_an_error_of_the_body_passes_and_frees_the_lock(scene: Scene) -> None:
    locks = locks_of(scene)

    with pytest.raises(ZeroDivisionError):
        async with lock(locks, "project:1", TTL):
            1 / 0  # noqa: B018

    assert await locks.holder("project:1") is None


@kept
async def test_when_nobody_answers_our_own_clock_ends_the_body_before_the_lock_ends(scene: Scene) -> None:
    scene.store.now = None
    locks = locks_of(scene)

    class Deaf(SqlLocks):
        async def refresh(self, held: HeldLock, ttl: Millis) -> HeldLock | None:
            raise Unreachable("the line is dead")

    deaf = Deaf(partial(ask, scene.store), new_id=World().new_id)
    with pytest.raises(LockLost):
        async with lock(deaf, "project:1", 2_000) as held:
            await asyncio.wait_for(asyncio.Event().wait(), PATIENCE)

    current = await locks.holder("project:1")
    assert current is not None, "nobody else can have got it yet"
    assert current.holder == held.holder
