"""Bytes that nobody needs any more: noted in `freed` by whichever transaction freed them, deleted afterwards.

A row of `freed` is a key, or a prefix that ends in a slash: all that lies under it. It goes once the bytes are gone, so
whoever dies in between leaves it to the next. What an artifact still names, or names again, is never deleted.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from functools import partial
from typing import Protocol

from telecine.store import Ask, Steps, Store, Write

BATCH = 500


def put_freed(keys: Iterable[str]) -> Steps[None]:
    """Note that these may be deleted; part of the transaction that freed them."""
    if rows := [{"key": key} for key in sorted(set(keys))]:
        yield Write("freed_put", {"keys": rows})


class ArtifactFiles(Protocol):
    """Where the bytes are, as far as this duty needs it."""

    async def under(self, prefix: str) -> Sequence[str]:
        """All keys below this one."""

    async def delete(self, keys: Sequence[str]) -> Collection[str]:
        """Delete them; those with which it did not work are the answer."""


async def clear(store: Store, place: ArtifactFiles) -> int:
    """Delete what was freed. How many files went."""
    count, after = 0, ""
    while freed := await store.read(partial(_some, after)):
        after = freed[-1]
        plain = [entry for entry in freed if not entry.endswith("/")]
        unnamed = await _unnamed(store, plain)
        stuck = set(await place.delete(unnamed))
        count += len(unnamed) - len(stuck)
        for prefix in freed:
            if prefix.endswith("/"):
                below = await _unnamed(store, await place.under(prefix))
                failed = await place.delete(below)
                count += len(below) - len(failed)
                stuck.update({prefix} if failed else ())
        await store.run(partial(_drop, [entry for entry in freed if entry not in stuck]))
    return count


async def _unnamed(store: Store, keys: Sequence[str]) -> list[str]:
    """Those that no artifact names."""
    found: list[str] = []
    for start in range(0, len(keys), BATCH):
        found += await store.read(partial(_free, keys[start : start + BATCH]))
    return found


def _some(after: str) -> Steps[list[str]]:
    rows = yield Ask("freed_some", {"after": after, "wanted": BATCH})
    return [row["key"] for row in rows]


def _free(keys: Sequence[str]) -> Steps[list[str]]:
    rows = yield Ask("artifact_free", {"keys": list(keys)})
    return [row["key"] for row in rows]


def _drop(keys: list[str]) -> Steps[None]:
    yield Ask("freed_drop", {"keys": keys})
