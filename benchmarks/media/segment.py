"""The order for segment 0 of every rung, by our own planner: what a viewer waits for."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

from benchmarks.media.ours import LADDER
from telecine.media.grid import Chunk
from telecine.media.ladder import climb
from telecine.media.ladder_spec import read_ladder
from telecine.media.orders import plain_order
from tests.media import drive


def order_for_first(path: Path, folder: Path) -> dict[str, Any]:
    looked = drive.look(path, folder)
    grid = drive.timing(looked, Fraction(6))
    rungs = climb(read_ladder(LADDER), looked.picture, grid.rate).rungs
    [order] = drive.video_orders(looked, grid, rungs, [Chunk(first=0, count=1)], {})
    return plain_order(order)
