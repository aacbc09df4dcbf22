"""Films, made once per run on first use."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

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
