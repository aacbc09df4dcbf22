"""What a worker says about itself when it enlists."""

from __future__ import annotations

import os
from collections.abc import Iterable
from importlib.metadata import version

from telecine.worker.engine_api import WorkerOptions
from telecine.worker_facts import Registration
from telecine.world import World


def registration_of(options: WorkerOptions, lanes: Iterable[str], world: World) -> Registration:
    machine, pid = world.machine, os.getpid()
    return Registration(
        name=options.name,
        hostname=machine.hostname,
        lanes=tuple(lanes),
        slots=options.slots,
        release=version("telecine"),
        labels=options.labels,
        boot_id=machine.boot_id,
        pid_space=machine.pid_space,
        pid=pid,
        pid_started=world.process_start(pid),
    )
