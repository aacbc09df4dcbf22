"""The worker program: claims tasks, runs their handlers, beats while they run, and reports.

The names are looked up when they are used: a handler's child process imports this package too, and has no use for
the loop or the engine.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from telecine.worker.engine_api import EngineApi, WorkerOptions
    from telecine.worker.flow_source import FlowSource, load_flows
    from telecine.worker.housekeeping import Housekeeper, sweep_on
    from telecine.worker.loop import Worker

_HOMES = {
    "FlowSource": "telecine.worker.flow_source",
    "Housekeeper": "telecine.worker.housekeeping",
    "Worker": "telecine.worker.loop",
    "WorkerOptions": "telecine.worker.engine_api",
    "EngineApi": "telecine.worker.engine_api",
    "load_flows": "telecine.worker.flow_source",
    "sweep_on": "telecine.worker.housekeeping",
}

__all__ = ["EngineApi", "FlowSource", "Housekeeper", "Worker", "WorkerOptions", "load_flows", "sweep_on"]


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
