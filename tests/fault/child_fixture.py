"""Where tests start media children, without a worker around them."""

import asyncio
import os
import time
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager, suppress
from pathlib import Path
from typing import Any

import psutil
import pytest

from telecine.errors import ChildFailed
from telecine.flow import MediaChild, Reader
from telecine.worker.media import fork_child
from telecine.worker.media.fork_server import ForkServer
from telecine.worker.media.media_child import ChildOptions, media_child
from telecine.worker.media.media_process import MediaProcess
from tests.fault.fake_child import SLEEPER

DOUBLE = str(Path(__file__).with_name("fake_child.py"))
TERM = 0.3


class Stage:
    """Where a test starts children, or has a fork server fork them; what they left is in `said`."""

    def __init__(self, folder: Path, nursery: ForkServer | None = None) -> None:
        self.folder = folder
        self.nursery = nursery
        self.said: list[tuple[str, str, str, dict[str, Any]]] = []
        self.family: set[MediaProcess] = set()

    def child(
        self, order: Any, files: dict[str, int] | None = None, source: Reader | None = None, **how: Any
    ) -> AbstractAsyncContextManager[MediaChild]:
        def say(*words: Any) -> None:
            self.said.append(words)

        usual: dict[str, Any] = {"program": DOUBLE, "folder": self.folder, "forker": self.nursery, "term": TERM}
        ways = ChildOptions(**{**usual, "mono": time.monotonic, "say": say, **how})
        return media_child(ways, order, files or {}, source, self.family)

    async def answer(self, order: Any, **how: Any) -> Any:
        """The result of an order that says nothing else."""
        async with self.child(order, **how) as child:
            async for message in child:
                if "done" in message:
                    return message["done"]
        return None

    async def failure(self, order: Any, **how: Any) -> ChildFailed:
        with pytest.raises(ChildFailed) as failed:
            await self.answer(order, **how)
        return failed.value

    @property
    def step(self) -> tuple[str, str, dict[str, Any]]:
        [step] = [(command, level, data) for command, level, kind, data in self.said if kind == "step"]
        return step


def play(scene: Callable[[], Awaitable[None]]) -> None:
    asyncio.run(asyncio.wait_for(scene(), 30))


def children() -> list[str]:
    """Media children of this process, and theirs; a test run has others, such as a database."""
    found = []
    for one in psutil.Process().children(recursive=True):
        with suppress(psutil.NoSuchProcess):
            command = " ".join(one.cmdline())
            unreaped = one.status() == psutil.STATUS_ZOMBIE and one.ppid() == os.getpid()
            nursery = one.name() == fork_child.FORK_SERVER
            if not nursery and (unreaped or DOUBLE in command or SLEEPER in command):
                found.append(f"{one.pid} {command}")
    return found
