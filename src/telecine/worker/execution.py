"""Run the handler of each claimed task, where its stage says, and say how it ended.

start ──▶ inline: on this loop ─────────┐
      ──▶ thread                        ├──▶ ended ──▶ outbox
      ──▶ process: a child              ┘
                ▲
stop ───────────┘  asked by an order, a drain, a lost lease: first kindly, then hard
"""

from __future__ import annotations

import asyncio
import inspect
import threading
from collections import deque
from collections.abc import Callable, Coroutine
from contextvars import copy_context
from dataclasses import dataclass
from functools import partial
from typing import Any

from telecine.facts import SECOND, Brief, Done, Fact, Failed, Released
from telecine.flow import Flow, Handler, Run
from telecine.worker.attempts import Attempt
from telecine.worker.current import current_lease
from telecine.worker.flow_source import FlowSource, home_of
from telecine.worker.handlers.attempt_tools import AttemptTools
from telecine.worker.handlers.bench import HandlerBench
from telecine.worker.handlers.handler_io import InlineIo, ThreadIo
from telecine.worker.handlers.inline_run import EagerCoroutine
from telecine.worker.handlers.outcome import of_error, of_return, trace_of
from telecine.worker.outbox import insist
from telecine.worker.processes.child_attempt import run_in_child

NOTHING_KEPT = Brief()


@dataclass(frozen=True, slots=True)
class StageRunner:
    """Where and by what a stage is run."""

    handler: Handler
    run: Run
    is_async: bool
    source: FlowSource | None


StageRunners = dict[tuple[str, str, int], StageRunner]


def stage_runners_of(flow: Flow, source: FlowSource | None) -> StageRunners:
    """By flow, stage and version. A flow handed over as an object is looked for where its handlers were written."""
    found: StageRunners = {}
    for stage in flow.graph.stages:
        handler, run = flow.handlers[stage.name], flow.runs[stage.name]
        home = (source or home_of(flow)) if run == "process" else None
        place = StageRunner(handler, run, inspect.iscoroutinefunction(handler), home)
        found[flow.name, stage.name, stage.version] = place
    return found


class Execution:
    """The handlers that run now."""

    def __init__(self, places: StageRunners, tools: AttemptTools, freed: Callable[[], None]) -> None:
        self._runners = places
        self._tools = tools
        self._held = tools.held
        self._observer = tools.options.observer
        self._freed = freed
        self._loop = asyncio.get_running_loop()
        self._queue: deque[tuple[Attempt, StageRunner]] = deque()
        self._runner: asyncio.Task[None] | None = None  # begins what is in the queue

    def start(self, attempt: Attempt) -> None:
        lease, held = attempt.lease, self._held
        held.attempts[attempt.key] = attempt
        held.running += 1
        if self._observer is not None:
            self._observer.begun(lease)
        place = self._runners[lease.flow, lease.stage, lease.version]
        if lease.limit is not None:
            late = Failed("hard time limit reached", code="timed_out")
            attempt.timer = self._loop.call_later(lease.limit / SECOND, partial(self.stop, attempt, late, hard=False))
        if place.run == "inline" and not lease.needs_brief:
            self._queue.append((attempt, place))
            self._begin_queued()
        else:
            self._start_task(attempt, self._briefed(attempt, place))

    def _begin_queued(self) -> None:
        if self._queue and self._runner is None:
            self._runner = self._loop.create_task(self._run_queued())

    async def _run_queued(self) -> None:
        """Begin handler after handler; the first one that waits has this task for itself, the rest get another."""
        me = self._runner
        while self._queue:
            attempt, place = self._queue.popleft()
            if attempt.stopping:
                self._ended(attempt, Released("stopped"))
                continue
            attempt.task = me
            current_lease.set(attempt.lease)
            try:
                handler = EagerCoroutine(self._inline(attempt, place, NOTHING_KEPT))
            except Exception as error:  # it did not even take its bench
                self._over(attempt, None, error)
                continue
            if not handler.begin():
                self._runner = None
                self._begin_queued()
                await handler
                self._over(attempt, handler.result, handler.error)
                return
            self._over(attempt, handler.result, handler.error)
        self._runner = None

    def _start_task(self, attempt: Attempt, work: Coroutine[Any, Any, Any]) -> None:
        task = attempt.task = self._loop.create_task(work)
        task.add_done_callback(partial(self._task_ended, attempt))

    def _inline(self, attempt: Attempt, place: StageRunner, brief: Brief) -> Coroutine[Any, Any, Any]:
        voice = InlineIo(attempt, self._tools)
        return place.handler(HandlerBench(attempt.lease, brief, voice))  # type: ignore[return-value]

    async def _briefed(self, attempt: Attempt, place: StageRunner) -> object:
        """Read what earlier stages and attempts left, then run."""
        lease = attempt.lease
        current_lease.set(lease)
        brief = NOTHING_KEPT
        if lease.needs_brief:
            brief = await insist(lambda: self._tools.engine.brief(lease), self._tools.world, self._tools.held.contact)
        if place.run == "inline":
            return await self._inline(attempt, place, brief)
        if place.run == "thread":
            return await self._in_thread(attempt, place, brief)
        assert place.source is not None
        tools = self._tools
        parts = (tools.held, tools.recorder, tools.scratch)
        return await run_in_child(attempt, (brief, place.source), parts, tools.options)

    async def _in_thread(self, attempt: Attempt, place: StageRunner, brief: Brief) -> object:
        """A thread of its own, not of a pool: one that never returns must not keep the process from ending."""
        voice = ThreadIo(attempt, self._tools, self._loop, waits=not place.is_async)
        bench = HandlerBench(attempt.lease, brief, voice)
        ended: asyncio.Future[object] = self._loop.create_future()
        attempt.interrupt = _only_ask

        def work() -> None:
            try:
                returned: object = place.handler(bench)
                if inspect.isawaitable(returned):
                    returned = asyncio.run(_awaited(returned))
            except BaseException as error:
                self._hand_over(ended.set_exception, ended, error)
            else:
                self._hand_over(ended.set_result, ended, returned)

        name = f"telecine-{attempt.lease.stage}-{attempt.lease.task_id}"
        threading.Thread(target=copy_context().run, args=(work,), name=name, daemon=True).start()
        return await ended

    def _hand_over(self, give: Callable[..., None], ended: asyncio.Future[object], value: object) -> None:
        if isinstance(value, (StopIteration, KeyboardInterrupt, SystemExit)):
            value = RuntimeError(f"the handler raised {type(value).__name__}")
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(lambda: None if ended.done() else give(value))

    def _task_ended(self, attempt: Attempt, task: asyncio.Task[Any]) -> None:
        if task.cancelled():
            self._over(attempt, None, asyncio.CancelledError())
        elif (error := task.exception()) is not None:
            self._over(attempt, None, error)
        else:
            self._over(attempt, task.result(), None)

    def _over(self, attempt: Attempt, returned: object, error: BaseException | None) -> None:
        fact: Fact
        if error is None:
            fact = returned if isinstance(returned, Released) else of_return(returned)
        elif isinstance(error, asyncio.CancelledError):
            fact = Released("stopped") if attempt.stopping else Failed("the handler was cancelled", code="cancelled")
        else:
            fact = of_error(error)
            if isinstance(fact, Failed):
                self._tools.held.line(attempt, fact.message, "error", data={"traceback": trace_of(error)})
        self._ended(attempt, fact)

    def _ended(self, attempt: Attempt, fact: Fact) -> None:
        tools = self._tools
        if self._observer is not None:
            self._observer.ended(attempt.lease, fact)
        self._held.running -= 1
        if attempt.timer is not None:
            attempt.timer.cancel()
        if attempt.life == "working":
            attempt.life = "ended"
            # Work that was done in spite of a farewell is worth saying; the engine decides.
            own = attempt.farewell is None or isinstance(fact, Done)
            tools.outbox.say(attempt, fact if own else attempt.farewell or fact)
        if attempt.key in tools.scratch.used:
            self._loop.run_in_executor(None, tools.scratch.remove, attempt.key)
        self._freed()

    # -- ending what runs ----------------------------------------------------------------------------

    def stop(self, attempt: Attempt, farewell: Fact | None, *, hard: bool) -> None:
        """Make the handler end. Then `farewell` is said; None: the lease is lost, there is nothing to say."""
        attempt.stopping = True
        if attempt.life != "working":
            return
        if farewell is None:
            attempt.life = "mute"
            self._tools.held.attempts.pop(attempt.key, None)
        elif attempt.farewell is None:
            attempt.farewell = farewell
        attempt.killed = attempt.killed or hard
        self.interrupt(attempt, hard)
        patience = 1.0 if hard else self._tools.options.term + 1.0
        self._loop.call_later(patience, self._give_up, attempt)

    def interrupt(self, attempt: Attempt, hard: bool) -> None:
        if attempt.interrupt is not None:
            attempt.interrupt(hard)
        elif isinstance(attempt.task, asyncio.Task):
            attempt.task.cancel()

    def _give_up(self, attempt: Attempt) -> None:
        """A handler inside the worker that does not end cannot be killed: its task goes back, its slot stays taken."""
        if attempt.life == "working":
            attempt.life = "ended"
            self._tools.outbox.say(attempt, attempt.farewell or Released("stopped"))


async def _awaited(returned: Any) -> object:
    return await returned


def _only_ask(hard: bool) -> None:
    """A thread cannot be killed; it sees `bench.stopping`."""
