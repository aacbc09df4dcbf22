"""Take words about leases: the short way first, then the long one, then item by item."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence

from telecine.engine.jobs.graph_cache import GraphCache
from telecine.engine.leases.fast_settle import ClaimMemory, FastSettled, Known, settle_lone
from telecine.engine.leases.settle import Settled, settle
from telecine.errors import StoreError, Unreachable
from telecine.facts import LeaseOutcome, SettleReply
from telecine.graph import Graph
from telecine.store import Rows, Store
from telecine.world import World


class SettleBatch:
    def __init__(self, store: Store, graph_cache: GraphCache, world: World) -> None:
        self._store, self._graph_cache, self._world = store, graph_cache, world
        self._memory = ClaimMemory()

    def remember(self, granted: Rows, graphs: Mapping[int, Graph]) -> None:
        """What a claim said is enough to settle a lone task."""
        self._memory.put(granted, graphs)

    async def settle(self, words: Sequence[LeaseOutcome]) -> Settled:
        """Any mixture; answers in the order of the words."""
        answers, ended = await self._short(words)
        rest = [place for place in range(len(words)) if place not in answers]
        long = await self._long([words[place] for place in rest]) if rest else Settled(())
        answers |= zip(rest, long.answers, strict=True)
        return Settled(tuple(answers[place] for place in range(len(words))), long.lanes, (*ended, *long.ended))

    async def _short(self, words: Sequence[LeaseOutcome]) -> tuple[dict[int, SettleReply], list[int]]:
        """Answers by place to what passed its guards, and jobs that ended if any is awaited. One word for each task."""
        places: dict[int, int] = {}
        by_flow: dict[int, list[Known]] = {}
        take = self._memory.take
        for place, word in enumerate(words):
            if word.task_id not in places and (row := take(word)) is not None:
                places[word.task_id] = place
                by_flow.setdefault(row["flow_id"], []).append((word, row))
        answers: dict[int, SettleReply] = {}
        ended: list[int] = []
        for flow_id, known in by_flow.items():
            passed = await self._lone(known, self._memory.graph(flow_id))
            answers |= {places[answer.task_id]: answer for answer in passed.answers}
            ended += passed.ended
        return answers, ended

    async def _lone(self, known: list[Known], graph: Graph) -> FastSettled:
        try:
            return await self._store.run(lambda: settle_lone(known, graph))
        except Unreachable:
            raise
        except StoreError:
            return FastSettled([], [])

    async def _long(self, words: Sequence[LeaseOutcome]) -> Settled:
        """A batch that the database refuses as a whole is run again item by item: one bad word harms no other."""
        try:
            return await self._store.run(lambda: settle(words, self._graph_cache, self._world.dice))
        except Unreachable:
            raise
        except Exception:
            if len(words) == 1:
                raise
        alone = await asyncio.gather(*(self._long([word]) for word in words), return_exceptions=True)
        heard = [settled for settled in alone if isinstance(settled, Settled)]
        if bad := next((failure for failure in alone if isinstance(failure, BaseException)), None):
            raise bad
        return Settled(
            tuple(answer for settled in heard for answer in settled.answers),
            frozenset().union(*(settled.lanes for settled in heard)),
            tuple(job_id for settled in heard for job_id in settled.ended),
        )
