"""What an attempt needs of the worker around it."""

from __future__ import annotations

from dataclasses import dataclass

from telecine.worker.attempts import Held
from telecine.worker.engine_api import EngineApi, WorkerOptions
from telecine.worker.handlers.recorder import Recorder
from telecine.worker.handlers.scratch import Scratch
from telecine.worker.media.fork_server import Nursery
from telecine.worker.outbox import Outbox
from telecine.world import World


@dataclass(frozen=True, slots=True, kw_only=True)
class Tools:
    """Made once per worker, for all its attempts."""

    engine: EngineApi
    held: Held
    outbox: Outbox
    recorder: Recorder
    scratch: Scratch
    nursery: Nursery
    options: WorkerOptions
    world: World
