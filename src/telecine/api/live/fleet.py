"""Which workers are there and which have something to do, as changes: online, offline, busy, idle.

Busy and idle follow from the events of tasks: the first that a worker starts, the last of its own that ends. Online is
a worker that registers or is heard of again, offline one that leaves or was silent for 30 s, which a look at the
fleet finds out.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from telecine.engine.events.event_context import DescribedEvent
from telecine.engine.queries.fleet import WorkerView

GONE = ("worker.left", "worker.lost")


class WorkerChange(NamedTuple):
    state: str
    worker: int
    name: str | None


@dataclass(slots=True)
class _Worker:
    name: str | None = None
    online: bool = True
    leases: set[tuple[int, int]] = field(default_factory=set)


class FleetWatch:
    def __init__(self) -> None:
        self._workers: dict[int, _Worker] = {}

    def begin(self, workers: Iterable[WorkerView]) -> None:
        """As it stands; nothing has changed yet."""
        self._workers = {
            one.id: _Worker(one.name, one.liveness == "online", {(task.task_id, task.token) for task in one.tasks})
            for one in workers
        }

    def look(self, workers: Iterable[WorkerView]) -> Iterator[WorkerChange]:
        """Who is silent by now, or heard of again."""
        for view in workers:
            known = self._workers.setdefault(view.id, _Worker(view.name, False))
            online = view.liveness == "online"
            if online != known.online:
                known.online = online
                yield WorkerChange("online" if online else "offline", view.id, view.name)

    def hear(self, told: DescribedEvent) -> Iterator[WorkerChange]:
        """The next event."""
        event = told.event
        if event.worker is None:
            return
        if event.kind in GONE:
            known = self._workers.pop(event.worker, None)
            if known is None or known.online:
                yield WorkerChange("offline", event.worker, told.worker_name)
        elif event.kind == "worker.registered":
            known = self._workers.setdefault(event.worker, _Worker(told.worker_name, False))
            if not known.online:
                known.online = True
                yield WorkerChange("online", event.worker, told.worker_name)
        elif event.kind.startswith("task.") and event.task_id is not None and event.token is not None:
            yield from self._work(told, (event.task_id, event.token))

    def _work(self, told: DescribedEvent, lease: tuple[int, int]) -> Iterator[WorkerChange]:
        worker = told.event.worker
        assert worker is not None
        known = self._workers.setdefault(worker, _Worker(told.worker_name))
        was_busy = bool(known.leases)
        (known.leases.add if told.event.kind == "task.started" else known.leases.discard)(lease)
        if bool(known.leases) != was_busy:
            yield WorkerChange("busy" if known.leases else "idle", worker, told.worker_name)
