"""Sorted sets of ready ids: the most urgent first, each given once, bounded, and never worth a wait."""

import asyncio
import itertools
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from uuid import uuid4

import pytest
from redis.asyncio import Redis

from telecine.dispatch.hints import KEPT_SECONDS, MAX_KEPT, MOMENT, WALK_EVERY, Hints, LaneHead
from telecine.dispatch.redis import RedisBell
from telecine.dispatch.redis_pool import RedisPool, RedisUnavailable
from telecine.dispatch.redis_sender import Look
from tests.fault.worker_processes import until
from tests.support.lock_backends import line_to
from tests.support.redis import PrivateRedis, no_heads, redis_bell

LANE, OTHER = "film/cut@1", "film/join@1"
_numbers = itertools.count(1)


@pytest.fixture(scope="module")
def server() -> Iterator[PrivateRedis]:
    with PrivateRedis() as server:
        yield server


@asynccontextmanager
async def hints_on(
    server: PrivateRedis, timeout: float = 10.0, moment: float = 10.0
) -> AsyncIterator[tuple[Hints, RedisPool]]:
    line = line_to(server.url, timeout)
    try:
        yield Hints(line, uuid4().hex, moment=moment), line
    finally:
        await line.close()


@asynccontextmanager
async def bells_on(
    server: PrivateRedis, *namespaces: str, looks: Sequence[Look] = ()
) -> AsyncIterator[tuple[RedisBell, ...]]:
    """A bell for each name, closed also where a test fails: else its connections would spoil a later one."""
    given = itertools.chain(looks, itertools.repeat(no_heads))
    bells = tuple(redis_bell(server.url, name, look) for name, look in zip(namespaces, given, strict=False))
    try:
        yield bells
    finally:
        for bell in bells:
            await bell.close()


async def put(hints: Hints, line: RedisPool, *heads: LaneHead) -> None:
    async def pipelined(redis: Redis) -> None:
        async with redis.pipeline(transaction=False) as pipeline:
            hints.offer(pipeline, heads)
            await pipeline.execute()

    await line.do(pipelined)


def heads(count: int, lane: str = LANE) -> list[LaneHead]:
    return [LaneHead(lane, id_, rank=1_000 + id_) for id_ in range(1, count + 1)]


async def test_the_most_urgent_hint_of_all_lanes_is_taken_first(server: PrivateRedis) -> None:
    async with hints_on(server) as (hints, line):
        await put(
            hints,
            line,
            LaneHead(LANE, 1, rank=500),
            LaneHead(OTHER, 2, rank=-7),
            LaneHead(LANE, 10, 100),
            LaneHead(LANE, 9, 100),
        )

        assert await hints.take([LANE, OTHER], 3) == [2, 9, 10]

        assert await hints.take([LANE, OTHER], 3) == [1]


async def test_a_set_can_be_looked_at_counted_and_corrected(server: PrivateRedis) -> None:
    async with hints_on(server) as (hints, line):
        await put(hints, line, *reversed(heads(5)))

        assert await hints.peek(LANE, 2) == [LaneHead(LANE, 1, 1_001), LaneHead(LANE, 2, 1_002)]
        assert (await hints.remove(LANE, [1, 3, 99]), await hints.size(LANE)) == (2, 3)

        assert [head.id for head in await hints.peek(LANE)] == [2, 4, 5]
        assert await hints.size(OTHER) == 0


async def test_no_id_is_given_to_two_who_ask(server: PrivateRedis) -> None:
    async with hints_on(server) as (hints, line):
        await put(hints, line, *heads(100))

        taken = [id_ for ids in await asyncio.gather(*(hints.take([LANE], 5) for _ in range(20))) for id_ in ids]

        rest = [head.id for head in await hints.peek(LANE, 1_000)]
        assert len(taken) == len(set(taken))
        assert sorted([*taken, *rest]) == list(range(1, 101))
        assert len(taken) >= 5


async def test_every_few_claims_one_takes_no_hints(server: PrivateRedis) -> None:
    async with hints_on(server) as (hints, line):
        await put(hints, line, *heads(100))

        taken = [bool(await hints.take([LANE], 1)) for _ in range(2 * WALK_EVERY)]

        assert taken.count(False) >= 2
        assert not taken[WALK_EVERY - 1]


async def test_hints_that_lead_astray_or_are_not_there_are_asked_for_ever_more_seldom(server: PrivateRedis) -> None:
    async with hints_on(server) as (hints, line):
        await put(hints, line, *heads(1_000))
        asked = 0

        for turn in range(400):
            hinted = await hints.take([LANE], 1)
            asked += bool(hinted)
            hints.judge(hinted, [(LANE, 5_000 + turn)], 1)

        assert 3 <= asked <= 20
        assert hints.used.stale == asked


async def test_hints_that_were_right_are_asked_for_again(server: PrivateRedis) -> None:
    async with hints_on(server) as (hints, line):
        await put(hints, line, *heads(200))
        taken = 0

        for _ in range(40):
            hinted = await hints.take([LANE], 1)
            taken += len(hinted)
            hints.judge(hinted, [(LANE, id_) for id_ in hinted], 1)

        assert taken == 40 - 40 // WALK_EVERY == hints.used.taken


async def test_what_is_no_id_is_dropped(server: PrivateRedis) -> None:
    async with hints_on(server) as (hints, _):
        server.say("ZADD", hints.key(LANE), 1, "rubbish", 2, "-5", 3, "9" * 30, 4, "\N{SNOWMAN}", 5, "7")

        assert await hints.take([LANE], 10) == [7]


async def test_a_set_is_bounded_in_size_and_time(server: PrivateRedis) -> None:
    async with hints_on(server) as (hints, line):
        await put(hints, line, *heads(MAX_KEPT + 50))

        assert await hints.size(LANE) == MAX_KEPT
        assert (await hints.peek(LANE, 1))[0].id == 1, "the least urgent ones went"
        assert 0 < server.say("TTL", hints.key(LANE)) <= KEPT_SECONDS


async def test_a_foreign_value_under_our_key_is_refused_and_is_no_outage(server: PrivateRedis) -> None:
    async with hints_on(server) as (hints, line):
        server.say("SET", hints.key(LANE), "somebody else's")

        assert [await hints.take([LANE], 1) for _ in range(6)] == [[]] * 6

        assert line.circuit.is_closed
        assert (line.count.refusals > 0, line.count.errors) == (True, 0)


async def test_a_claim_waits_no_more_than_a_moment_for_a_redis_that_has_stopped() -> None:
    with PrivateRedis() as server:
        async with hints_on(server, timeout=2.0, moment=MOMENT) as (hints, line):
            await put(hints, line, *heads(10))
            server.pause()

            began = time.monotonic()
            taken = [await hints.take([LANE], 1) for _ in range(20)]
            took = time.monotonic() - began
            server.resume()

            assert taken == [[]] * 20
            assert took < 1.0, "only a few questions are under way at a time; the others do not wait at all"


async def test_while_redis_is_away_nobody_asks_it_and_when_it_is_back_it_is_asked_again() -> None:
    with PrivateRedis() as server:
        async with hints_on(server) as (hints, line):
            server.kill()
            await until(lambda: _failed(line))
            errors = line.count.errors
            assert [await hints.take([LANE], 1) for _ in range(50)] == [[]] * 50
            assert line.count.errors == errors, "an open circuit spares the question"

            server.start()
            await until(lambda: line.is_open)
            await put(hints, line, *heads(3))

            assert await until(lambda: hints.take([LANE], 1))
            assert line.circuit.opened == 1


async def _failed(line: RedisPool) -> bool:
    try:
        await line.do(lambda redis: redis.ping())
    except RedisUnavailable:
        return not line.is_open
    return False


async def test_a_full_redis_refuses_hints_and_still_carries_rings() -> None:
    with PrivateRedis() as server:
        server.say("CONFIG", "SET", "maxmemory", "1")
        async with bells_on(server, "full", "full", looks=[_five]) as (here, there):
            await until(lambda: _listening(there))
            wakeups = there.vitals().wakeups

            here.ring([LANE])

            await until(lambda: there.vitals().wakeups > wakeups and here.vitals().refusals > 0)
            told = here.vitals()
            assert (told.circuit, told.errors) == ("closed", 0)
            assert "OOM" in (told.last_error or "") or "memory" in (told.last_error or "")


async def test_a_copy_that_takes_no_writes_is_as_good_as_none() -> None:
    with PrivateRedis() as first, PrivateRedis("--replicaof", "127.0.0.1", str(first.port)) as copy:
        async with bells_on(copy, "copy", looks=[_five]) as (bell,):

            async def given_up() -> bool:
                bell.ring([LANE])
                return bell.vitals().outages > 0

            await until(given_up)


async def _five(lanes: Sequence[str], wanted: int) -> Sequence[LaneHead]:
    """Ids that nobody has seen before."""
    first = next(_numbers) * 5
    return [LaneHead(LANE, id_, rank=id_) for id_ in range(first, first + 5)]


async def _listening(bell: RedisBell) -> bool:
    await bell.wait(0.01)
    return bell.vitals().listening


async def test_two_namespaces_on_one_redis_do_not_hear_each_other(server: PrivateRedis) -> None:
    async with bells_on(server, "one", "two", "one") as (ours, theirs, same):
        for bell in (theirs, same):
            await until(lambda bell=bell: _listening(bell))  # type: ignore[misc]
        before = theirs.vitals().wakeups

        ours.ring([LANE])
        ours.news.ring()
        await until(lambda: same.vitals().wakeups >= 1)

        assert theirs.vitals().wakeups == before
        assert ours.vitals().rings >= 1


async def test_a_thousand_rings_are_few_messages(server: PrivateRedis) -> None:
    async with bells_on(server, "many") as (there,):
        await until(lambda: _listening(there))

        async with bells_on(server, "many") as (here,):
            for _ in range(1_000):
                here.ring([LANE])
            await until(lambda: there.vitals().wakeups)

        assert 1 <= here.vitals().rings <= 5


async def test_a_listener_whose_connection_was_cut_looks_and_listens_again(server: PrivateRedis) -> None:
    async with bells_on(server, "cut", "cut") as (here, there):
        await until(lambda: _listening(there))
        await there.wait(0.2)  # each channel that is subscribed to wakes the listener once
        before = _subscribers(server)

        server.say("CLIENT", "KILL", "TYPE", "pubsub")

        await asyncio.wait_for(there.wait(20.0), 20.0)  # back again: something may have been missed
        # Not `listening`: for a moment after the kill it still speaks of the old connection.
        await until(lambda: _subscribers(server) - before)
        wakeups = there.vitals().wakeups
        here.ring([LANE])
        await until(lambda: there.vitals().wakeups > wakeups)


def _subscribers(server: PrivateRedis) -> set[str]:
    lines: str = server.say("CLIENT", "LIST", "TYPE", "pubsub")
    return {line.split(" ", 1)[0] for line in lines.splitlines()}
