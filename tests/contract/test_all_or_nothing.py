"""A transaction that breaks after any of its statements leaves nothing behind."""

from collections.abc import Callable
from typing import Any

import pytest

from telecine.store import Reserve, Steps
from tests.support.engine_fixture import Bed
from tests.support.interleaver import Make
from tests.support.race_cases import FILM, LONE, SCENES
from tests.support.scene import TABLES


class Cut(Exception):
    """The process that ran the transaction came to grief."""


def cut(make: Make, after: int) -> Make:
    """The same transaction, which breaks once `after` statements were carried out."""

    def steps() -> Steps[Any]:
        inner, done = make(), 0
        try:
            step = next(inner)
            while True:
                if done == after and not isinstance(step, Reserve):
                    raise Cut
                done += not isinstance(step, Reserve)
                step = inner.send((yield step))
        except StopIteration as end:
            if done == after:
                raise Cut from None
            return end.value

    return steps


def is_whole(make: Make) -> bool:
    """One statement that commits by itself has no inside."""
    first = next(make())
    return not isinstance(first, Reserve) and first.whole


async def contents(bed: Bed) -> dict[str, list[str]]:
    return {table: sorted(str(row) for row in await bed.sql(f"select * from {table}")) for table in TABLES}


WORDS = [
    pytest.param(bring, word, id=f"{scene}: {name}")
    for scene, (bring, words) in SCENES.items()
    for name, word in words.items()
]


@pytest.mark.parametrize(("bring", "word"), WORDS)
async def test_a_transaction_that_breaks_leaves_nothing_behind(
    bed: Bed, bring: Callable[[Bed], Any], word: Callable[[Any], Make]
) -> None:
    await bed.enact(FILM, LONE)
    bed.bob = await bed.enlist("bob")
    make = word(await bring(bed))
    if is_whole(make):
        return
    before = await contents(bed)

    cuts = 0
    for after in range(1, 50):
        try:
            await bed.store.run(cut(make, after))
            break
        except Cut:
            cuts += 1
            assert await contents(bed) == before, f"broken after statement {after}, something stayed"
        except Exception:  # refused as a whole: nothing to cut
            assert await contents(bed) == before
            break

    assert cuts < 49
    await bed.audited()
