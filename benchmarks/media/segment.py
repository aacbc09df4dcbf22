"""What our own planner says before anything is encoded: the rungs, and the order for their segment 0."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

from benchmarks.media.ours import LADDER
from telecine.media.grid import Chunk
from telecine.media.ladder import climb
from telecine.media.ladder_spec import read_ladder
from telecine.media.orders import Rung, Timing, plain_order
from tests.media import drive


def rungs_for(path: Path, folder: Path) -> tuple[tuple[Rung, ...], Timing]:
    _, rungs, grid = _planned(path, folder)
    return rungs, grid


def order_for_first(path: Path, folder: Path) -> dict[str, Any]:
    """What a viewer waits for."""
    looked, rungs, grid = _planned(path, folder)
    [order] = drive.video_orders(looked, grid, rungs, [Chunk(first=0, count=1)], {})
    return plain_order(order)


def _planned(path: Path, folder: Path) -> tuple[drive.Looked, tuple[Rung, ...], Timing]:
    looked = drive.look(path, folder)
    grid = drive.timing(looked, Fraction(6))
    return looked, climb(read_ladder(LADDER), looked.picture, grid.rate).rungs, grid
