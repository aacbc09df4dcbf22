"""The beat's own thread."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from telecine.worker.attempts import HeldAttempts
from telecine.worker.engine_api import WorkerOptions
from telecine.worker.heartbeat import HeartbeatThread
from telecine.world import World


@pytest.mark.parametrize("pause", [None, 0.0, 0.02])
def test_it_stops_at_once_even_if_it_has_hardly_begun(pause: float | None, tmp_path: Path) -> None:
    asked: list[object] = []

    @asynccontextmanager
    async def words() -> AsyncIterator[Any]:
        asked.append(None)
        yield None

    async def live() -> HeartbeatThread:
        heart = HeartbeatThread(HeldAttempts(), WorkerOptions(name="w", scratch=tmp_path), World(), words)
        heart.start(obey=print, gone=print, lost_contact=print)
        if pause is not None:
            await asyncio.sleep(pause)
        await heart.stop()
        return heart

    begun = time.monotonic()
    heart = asyncio.run(live())

    assert time.monotonic() - begun < 2.0
    assert heart._thread is not None
    assert not heart._thread.is_alive()
    assert asked == []  # it had nothing to say yet
