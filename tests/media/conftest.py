"""Films, made once per run on first use."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from fcntl import LOCK_EX, flock
from pathlib import Path
from threading import Lock

import pytest

from telecine.media.orders import AudioTrackOrder, Rung, Timing
from tests.media import child_driver
from tests.media.fork_server import ForkServer
from tests.media.sources import KINDS
from tests.media.transcode_env import Theatre, play, small


@pytest.fixture(scope="session", autouse=True)
def children() -> Iterator[None]:
    """Children of `drive` are forked from a process that is loaded once; on Linux, where that is safe."""
    if sys.platform != "linux":
        yield
        return
    child_driver.nursery = ForkServer()
    yield
    child_driver.nursery.close()
    child_driver.nursery = None


@pytest.fixture(scope="module")
def started_in_earnest() -> Iterator[None]:
    """Children of this module are started as a worker starts them."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(child_driver, "nursery", None)
        yield


@pytest.fixture(scope="session")
def source(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """The file of a kind, by its name: made once per run, by whoever of those that run side by side needs it first."""
    own = tmp_path_factory.getbasetemp()
    folder = (own.parent if "PYTEST_XDIST_WORKER" in os.environ else own) / "films"
    folder.mkdir(exist_ok=True)
    making = Lock()

    def made_once(name: str) -> Path:
        kind = KINDS[name]
        home = folder / name
        path = home / f"film.{kind.suffix}"
        with making, (folder / f"{name}.lock").open("w") as turn:
            flock(turn, LOCK_EX)
            if not path.exists():
                unfinished = folder / f"{name}.making"
                unfinished.mkdir()
                made = kind.make(unfinished / path.name)
                assert made.name == path.name
                unfinished.rename(home)
        return path

    return made_once


@pytest.fixture(scope="session")
def finished(source: Callable[[str], Path], tmp_path_factory: pytest.TempPathFactory) -> Callable[[Path], None]:
    """Furnishes a folder as a theatre whose first job has made the film `mp4-h264`; the film is made once."""
    original = tmp_path_factory.mktemp("finished") / "house"

    async def story(house: Theatre) -> None:
        assert (await house.completed(small(source("mp4-h264")))).id == 1

    def furnish(folder: Path) -> None:
        if not original.exists():
            play(story, original)
        shutil.copytree(original, folder, dirs_exist_ok=True)

    return furnish


@pytest.fixture(scope="session")
def looked(
    request: pytest.FixtureRequest, source: Callable[[str], Path], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Callable[[str], child_driver.Looked]]:
    """What is in the film of a kind. One thread looks ahead while tests encode: there are two cores to use."""
    folder = tmp_path_factory.mktemp("looked")
    with ThreadPoolExecutor(1) as ahead:
        looking = {
            name: ahead.submit(lambda one=name: child_driver.look(source(one), folder / one))
            for name in _asked(request)
        }
        yield lambda name: looking[name].result()
        ahead.shutdown(cancel_futures=True)


def _asked(request: pytest.FixtureRequest) -> list[str]:
    """The kinds whose film this run looks at, in the order of its tests."""
    tests = (item for item in request.session.items if "looked" in getattr(item, "fixturenames", ()))
    names = (test.callspec.params["name"] for test in tests if hasattr(test, "callspec"))
    return list(dict.fromkeys(names))


@pytest.fixture(scope="session")
def made_inits(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., dict[str, bytes]]:
    """The init segments of a plan; those of equal plans are made once."""
    known: dict[object, dict[str, bytes]] = {}

    def made_once(grid: Timing, rungs: Sequence[Rung], tracks: Sequence[AudioTrackOrder] = ()) -> dict[str, bytes]:
        plan = (grid.rate, grid.gop, tuple(rungs), tuple(tracks))
        if plan not in known:
            known[plan] = child_driver.make_inits(grid, rungs, tracks, tmp_path_factory.mktemp("inits"))
        return known[plan]

    return made_once
