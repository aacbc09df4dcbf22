"""What our own planner says before anything is encoded: the rungs, and the order for their segment 0."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

from benchmarks.media.ours import LADDER
from telecine.media.ladders.ladder import climb
from telecine.media.ladders.ladder_spec import read_ladder
from telecine.media.orders import Rung, Timing, plain_order
from telecine.media.timeline.grid import Chunk
from tests.media import child_driver


def rungs_for(path: Path, folder: Path) -> tuple[tuple[Rung, ...], Timing]:
    _, rungs, grid = _planned(path, folder)
    return rungs, grid


def order_for_first(path: Path, folder: Path) -> dict[str, Any]:
    """What a viewer waits for."""
    looked, rungs, grid = _planned(path, folder)
    [order] = child_driver.video_orders(looked, grid, rungs, [Chunk(first=0, count=1)], {})
    return plain_order(order)


def _planned(path: Path, folder: Path) -> tuple[child_driver.Looked, tuple[Rung, ...], Timing]:
    looked = child_driver.look(path, folder)
    grid = child_driver.timing(looked, Fraction(6))
    return looked, climb(read_ladder(LADDER), looked.picture, grid.rate).rungs, grid
