"""Short orders to a media child: one answer, and files in the scratch folder."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from telecine.errors import ChildFailed
from telecine.flow import Bench
from telecine.media.orders import plain_order


def made_file(bench: Bench, name: str) -> Path:
    """A file that a child says it made: a plain one, right in the scratch folder. The child is not to be trusted."""
    path = bench.scratch / name
    if path.name != name or path.is_symlink() or not path.is_file():
        raise ChildFailed(f"the media child names a file that is not its own: {name!r}", code="bad_path")
    return path


async def answer(
    bench: Bench,
    order: Any,
    source: dict[str, Any] | None = None,
    *,
    of: float = 0.0,
    notes: list[str] | None = None,
) -> Any:
    """What the child answers to one order; what it says meanwhile is progress (out of `of`) or a note."""
    result = None
    async with bench.child(plain_order(order), **(source or {})) as child:
        async for message in child:
            match message:
                case {"progress": done} if of:
                    bench.progress(done, of)
                case {"note": text}:
                    bench.log(text)
                    if notes is not None:
                        notes.append(text)
                case {"done": found}:
                    result = found
    return result
