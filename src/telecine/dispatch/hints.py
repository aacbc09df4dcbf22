"""Hints: per lane a sorted set of ready task ids in Redis, the most urgent first.

        ring ──▶ sender: the heads of these lanes, read off the database's index ──▶ ZADD (pipelined)
        claim ◀── take: the most urgent ids of all lanes that the worker serves, removed as they are read

A hint is where to look, never what to do: the claim checks each id in SQL as it checks any task, and walks the index
for the slots that are left. So an id that is gone, foreign, doubled or invented costs one look, and a lost one nothing.
Popping gives each of many claimers ids of its own. Lower rank = more urgent = lower score = popped first.

A task that nobody hinted must not wait behind hints that never end, so every few claims one takes no hints
at all and walks. In a backlog with many claimers the walk is as good as any hint, and takes what others were just
hinted at: hints that mostly lead astray, or are not there, are asked for ever more seldom (see decision 0010).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from telecine.dispatch.redis_pool import RedisPool, RedisUnavailable

# Of each lane, so many ids are offered at a time, and so many are kept at most.
OFFERED = 128
MAX_KEPT = 1_024
# A lane that nobody touches for so long leaves nothing behind.
KEPT_SECONDS = 600
# A hint that takes longer than this is not worth the wait; a claim goes on without.
MOMENT = 0.05
# A Redis that hangs is asked so often, then no more until it has answered, or not.
MAX_ASKING = 8
# Of so many claims one walks without hints.
WALK_EVERY = 4
# Hints that led astray are asked for ever more seldom: after so many claims without at most.
MAX_REST = 64
MAX_ID = (1 << 63) - 1

TAKE = """
local wanted, found, ids = tonumber(ARGV[1]), {}, {}
for _, key in ipairs(KEYS) do
  local some = redis.call('zrange', key, 0, wanted - 1, 'withscores')
  for i = 1, #some, 2 do found[#found + 1] = {tonumber(some[i + 1]), some[i], key} end
end
table.sort(found, function(a, b)
  if a[1] ~= b[1] then return a[1] < b[1] end
  if #a[2] ~= #b[2] then return #a[2] < #b[2] end
  return a[2] < b[2]
end)
for i = 1, math.min(wanted, #found) do
  redis.call('zrem', found[i][3], found[i][2])
  ids[i] = found[i][2]
end
return ids
"""


@dataclass(frozen=True, slots=True)
class LaneHead:
    """A ready task near the head of its lane."""

    lane: str
    id: int
    rank: int


@dataclass(slots=True)
class HintUse:
    """How the hints fared, for metrics."""

    offered: int = 0
    taken: int = 0
    stale: int = 0


class Hints:
    """Takes hints for claims. `spent` hears of ids, by lane, that are gone."""

    def __init__(self, line: RedisPool, namespace: str, *, moment: float = MOMENT) -> None:
        self.used = HintUse()
        self.spent: Callable[[Mapping[str, Sequence[int]]], None] = _nothing
        self._line = line
        self._moment = moment
        self._prefix = f"telecine:{namespace}:ready:"
        self._claims = 0
        self._doubt = self._rest = 0
        self._vain = False  # there was no hint when we last asked
        self._asking: set[asyncio.Task[list[int]]] = set()

    def key(self, lane: str) -> str:
        return self._prefix + lane

    async def take(self, lanes: Sequence[str], wanted: int) -> list[int]:
        """Ids to look at first; none if Redis is away, slow or empty. Never an error, never longer than a moment."""
        self._claims += 1
        walks = self._rest > 0 or self._claims % WALK_EVERY == 0 or len(self._asking) >= MAX_ASKING
        self._rest = max(0, self._rest - 1)
        if walks or not self._line.is_open or not lanes or wanted <= 0:
            return []
        asking = asyncio.create_task(self._take(lanes, min(wanted, OFFERED)))
        self._asking.add(asking)
        asking.add_done_callback(self._asking.discard)
        done, _ = await asyncio.wait([asking], timeout=self._moment)
        return asking.result() if done else []

    async def _take(self, lanes: Sequence[str], wanted: int) -> list[int]:
        keys = [self.key(lane) for lane in lanes]
        try:
            found = await self._line.script(TAKE, keys, [wanted])
        except RedisUnavailable:
            return []
        self._vain = not found
        return [id_ for member in found if (id_ := id_of(member)) is not None]

    def judge(self, hinted: Sequence[int], granted: Sequence[tuple[str, int]], wanted: int) -> None:
        """What a claim made of its hints (`granted`: lane and id). What it found by itself is hinted no longer."""
        offered = set(hinted)
        good = sum(id_ in offered for _, id_ in granted)
        self.used.taken += good
        self.used.stale += len(hinted) - good
        if hinted or (granted and self._vain):
            self._vain = False
            self._doubt = 0 if hinted and 2 * good >= len(hinted) else min(MAX_REST, max(1, 2 * self._doubt))
            self._rest = self._doubt
        walked: dict[str, list[int]] = {}
        for lane, id_ in granted:
            if id_ not in offered:
                walked.setdefault(lane, []).append(id_)
        if walked and self._line.is_open:
            self.spent(walked)

    # -- for whoever looks after the sets -----------------------------------------------------------

    def offer(self, pipeline: Any, heads: Sequence[LaneHead]) -> None:
        """Put these into their sets, within a pipeline."""
        by_lane: dict[str, dict[str, int]] = {}
        for head in heads:
            by_lane.setdefault(head.lane, {})[str(head.id)] = head.rank
        for lane, members in by_lane.items():
            key = self.key(lane)
            pipeline.zadd(key, members)
            pipeline.zremrangebyrank(key, MAX_KEPT, -1)
            pipeline.expire(key, KEPT_SECONDS)
        self.used.offered += len(heads)

    def withdraw(self, pipeline: Any, gone: Mapping[str, Sequence[int]]) -> None:
        """Take these out of their sets, within a pipeline."""
        for lane, ids in gone.items():
            pipeline.zrem(self.key(lane), *map(str, ids))

    async def peek(self, lane: str, limit: int = 10) -> list[LaneHead]:
        """The most urgent hints of a lane; they stay. Raises `RedisUnavailable`."""
        key = self.key(lane)
        found: Any = await self._line.do(lambda redis: redis.zrange(key, 0, limit - 1, withscores=True))
        return [LaneHead(lane, id_, int(rank)) for member, rank in found if (id_ := id_of(member)) is not None]

    async def size(self, lane: str) -> int:
        """How many hints a lane has. Raises `RedisUnavailable`."""
        return int(await self._line.do(lambda redis: redis.zcard(self.key(lane))))

    async def remove(self, lane: str, ids: Sequence[int]) -> int:
        """Take hints out; how many were there. Raises `RedisUnavailable`."""
        return int(await self._line.do(lambda redis: redis.zrem(self.key(lane), *map(str, ids)))) if ids else 0


def id_of(member: object) -> int | None:
    """Anybody may write into Redis: what cannot be an id of ours is none."""
    text = str(member)
    if not (text.isascii() and text.isdigit() and len(text) <= 19):
        return None
    number = int(text)
    return number if number <= MAX_ID else None


def _nothing(*_: object) -> None:
    return None
