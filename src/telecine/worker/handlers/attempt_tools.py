"""What an attempt needs of the worker around it."""

from __future__ import annotations

from dataclasses import dataclass

from telecine.worker.attempts import HeldAttempts
from telecine.worker.engine_api import EngineApi, WorkerOptions
from telecine.worker.handlers.recorder import Recorder
from telecine.worker.handlers.scratch import Scratch
from telecine.worker.media.fork_server import ForkServer
from telecine.worker.outbox import Outbox
from telecine.world import World


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptTools:
    """Made once per worker, for all its attempts."""

    engine: EngineApi
    held: HeldAttempts
    outbox: Outbox
    recorder: Recorder
    scratch: Scratch
    fork_server: ForkServer
    options: WorkerOptions
    world: World
