"""Films, made once per run on first use."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from telecine.media.orders import Rung, Timing, Track
from tests.media import drive
from tests.media.sources import KINDS


@pytest.fixture(scope="session")
def source(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """The file of a kind, by its name."""
    folder = tmp_path_factory.mktemp("films")
    made: dict[str, Path] = {}

    def made_once(name: str) -> Path:
        if name not in made:
            kind = KINDS[name]
            home = folder / name
            home.mkdir()
            made[name] = kind.make(home / f"film.{kind.suffix}")
        return made[name]

    return made_once


@pytest.fixture(scope="session")
def made_inits(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., dict[str, bytes]]:
    """The init segments of a plan; those of equal plans are made once."""
    known: dict[object, dict[str, bytes]] = {}

    def made_once(grid: Timing, rungs: Sequence[Rung], tracks: Sequence[Track] = ()) -> dict[str, bytes]:
        plan = (grid.rate, grid.gop, tuple(rungs), tuple(tracks))
        if plan not in known:
            known[plan] = drive.make_inits(grid, rungs, tracks, tmp_path_factory.mktemp("inits"))
        return known[plan]

    return made_once
