"""What an attempt needs of the worker around it."""

from __future__ import annotations

from dataclasses import dataclass

from telecine.worker.held import Held
from telecine.worker.nursery import Nursery
from telecine.worker.outbox import Outbox
from telecine.worker.recorder import Recorder
from telecine.worker.scratch import Scratch
from telecine.worker.words import Words, WorkerOptions
from telecine.world import World


@dataclass(frozen=True, slots=True, kw_only=True)
class Tools:
    """Made once per worker, for all its attempts."""

    words: Words
    held: Held
    outbox: Outbox
    recorder: Recorder
    scratch: Scratch
    nursery: Nursery
    options: WorkerOptions
    world: World
