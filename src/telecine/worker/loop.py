"""The worker's loop: claim while there are free slots, run, settle; drain on stop.

    enlist ──▶ claim ──▶ start … handlers … ended ──▶ settle ──▶ retire
                 ▲  free slots │                         │
                 └─────────────┴── bell, or a second ────┘

A claim and a settle may be in flight at the same time. Any word whose answer was lost is said again with the same
request id or token; the engine answers a repeat as it answered the first.
"""

from __future__ import annotations

import asyncio
import logging
import signal
from collections.abc import Iterable
from contextlib import suppress

from telecine.artifacts import Artifacts
from telecine.dispatch import Bell
from telecine.dispatch.task_end import end
from telecine.errors import NotAllowed, StoreError, TelecineError, WorkerRevoked
from telecine.facts import SECOND, Mode, Orders, Released
from telecine.flow import CHILD, Flow
from telecine.worker.artifact_place import ArtifactPlace, LocalArtifacts
from telecine.worker.attempts import Attempt, HeldAttempts
from telecine.worker.claims import Claims
from telecine.worker.current import about
from telecine.worker.engine_api import EngineApi, OpenEngine, WorkerOptions
from telecine.worker.execution import Execution, StageRunners, stage_runners_of
from telecine.worker.flow_source import FlowSource, load_flows
from telecine.worker.handlers.attempt_tools import AttemptTools
from telecine.worker.handlers.recorder import Recorder
from telecine.worker.handlers.scratch import Scratch
from telecine.worker.heartbeat import HeartbeatThread
from telecine.worker.lanes import lanes_of
from telecine.worker.media.fork_server import ForkServer
from telecine.worker.outbox import Outbox, insist
from telecine.worker.registration import registration_of
from telecine.world import World

log = logging.getLogger(__name__)

LAST_SECONDS = 2.0


class Worker:
    """One worker program. Its flows are known to the engine already: whoever starts a worker registers them."""

    def __init__(  # noqa: PLR0917 - the six things that a worker is made of
        self,
        engine: EngineApi,
        bell: Bell,
        flows: Iterable[Flow | FlowSource],
        options: WorkerOptions,
        world: World,
        open_beat_engine: OpenEngine,
    ) -> None:
        self._engine = engine
        self._options = options
        self._world = world
        self._runners: StageRunners = {}
        known: list[Flow] = []
        for given in flows:
            for flow in [given] if isinstance(given, Flow) else load_flows(given):
                known.append(flow)
                self._runners |= stage_runners_of(flow, given if isinstance(given, FlowSource) else None)
        self.lanes = lanes_of(known, options.labels)
        self._held = HeldAttempts()
        self._heart = HeartbeatThread(self._held, options, world, open_beat_engine)
        self._claims = Claims(engine, bell, self.lanes, options, world)
        self._outbox = Outbox(engine, self._held, world, self._claims.freed.set)
        self._outbox.observer = options.observer
        self._stops = 0
        self._late = float("inf")  # when a drain stops waiting
        self._stopped = asyncio.Event()
        self._shut_out = asyncio.Event()
        self._why: TelecineError = WorkerRevoked("this worker was shut out")
        self._loop: asyncio.AbstractEventLoop | None = None
        self._execution: Execution | None = None

    # -- for whoever runs it -----------------------------------------------------------------------

    async def run(self) -> None:
        """Work until told to stop, then finish in order."""
        self._loop = asyncio.get_running_loop()
        scratch = Scratch(self._options.scratch, f"{self._options.name}-{self._world.new_id()[:12]}")
        await asyncio.to_thread(scratch.open)
        recorder = Recorder(self._engine, self._world, self._place())
        fork_server = ForkServer(CHILD)
        tools = AttemptTools(
            engine=self._engine,
            held=self._held,
            outbox=self._outbox,
            recorder=recorder,
            scratch=scratch,
            fork_server=fork_server,
            options=self._options,
            world=self._world,
        )
        self._execution = Execution(self._runners, tools, self._claims.freed.set)
        if self._stops:
            self._stop_now()
        try:
            if await self._enlist():
                await self._work()
        finally:
            try:
                await fork_server.close()
            finally:
                await asyncio.to_thread(scratch.close)

    def stop(self) -> None:
        """First: finish what runs, claim nothing more. Second: end at once. From any thread, or a signal."""
        self._stops += 1
        if self._loop is not None:
            with suppress(RuntimeError):
                self._loop.call_soon_threadsafe(self._stop_now)

    def obey_signals(self) -> None:
        """Let SIGTERM and SIGINT stop this worker; call it inside the running loop, in the main thread."""
        for number in (signal.SIGTERM, signal.SIGINT):
            asyncio.get_running_loop().add_signal_handler(number, self.stop)

    def _place(self) -> ArtifactPlace | None:
        """Where artifacts are: with the server that the words go to, or where the options say."""
        if self._engine.place is not None:
            return self._engine.place
        where = self._options.artifacts
        return None if where is None else LocalArtifacts(Artifacts(where, self._options.s3))

    # -- from beginning to end -----------------------------------------------------------------------

    async def _enlist(self) -> bool:
        """Register, as long as it takes; False when told to stop before that."""
        asking = insist(
            lambda: self._engine.enlist(registration_of(self._options, self.lanes, self._world)),
            self._world,
            self._held.contact,
        )
        enlisting = asyncio.ensure_future(asking)
        others = [asyncio.ensure_future(self._stopped.wait()), asyncio.ensure_future(self._barred())]
        await asyncio.wait({enlisting, *others}, return_when=asyncio.FIRST_COMPLETED)
        for one in (*others, enlisting):
            one.cancel()
        if others[1].done() and not others[1].cancelled():
            others[1].result()
        if enlisting.cancelled() or not enlisting.done():
            return False
        self._held.worker = enlisting.result()
        self._held.done = self._held.failed = 0  # of this incarnation
        self._claims.mode = Mode.ACTIVE
        self._claims.freed.set()
        return True

    async def _enlist_again(self) -> None:
        """A worker that is not enlisted gets no work, so this does not end before it is, or is shut out."""
        while True:
            try:
                await self._enlist()
                return
            except NotAllowed as error:
                self._given_up(WorkerRevoked(str(error)))
                return
            except Exception as error:
                self._held.contact.stumbled("enlisting", error, self._world.mono())
                await asyncio.sleep(self._options.poll)

    async def _work(self) -> None:
        self._heart.start(obey=self._obey, gone=self._given_up, lost_contact=self._lost_contact)
        assert self._execution is not None
        claiming = self._claims.run(self._held, self._outbox, self._execution.start)
        duties = [claiming, self._outbox.run(), self._sweep_on(), self._drained(), self._barred()]
        tasks = [asyncio.ensure_future(duty) for duty in duties]
        try:
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()  # `_drained` ends by itself, `_barred` says why; anything else is a bug, raised here
        finally:
            await self._leave(tasks)

    async def _leave(self, tasks: list[asyncio.Task[None]]) -> None:
        for attempt in self._held.snapshot():
            self._end(attempt, Released("shutdown"), hard=True)
        patience = self._world.mono() + LAST_SECONDS
        while self._held.running and self._world.mono() < patience:
            self._claims.freed.clear()
            with suppress(TimeoutError):
                async with asyncio.timeout(LAST_SECONDS / 10):
                    await self._claims.freed.wait()
        await end(*tasks)
        await self._heart.stop()
        try:
            async with asyncio.timeout(5.0):
                await self._say_goodbye()
        except Exception as error:
            log.warning("left without a goodbye: %s", str(error) or "no answer in time")

    async def _say_goodbye(self) -> None:
        if self._held.worker is not None:
            if not self._shut_out.is_set():
                await self._engine.beat(self._held.worker, [], self._held.totals())
            await self._engine.retire(self._held.worker)

    # -- orders --------------------------------------------------------------------------------------

    def _obey(self, orders: Orders) -> None:
        if orders.mode is not self._claims.mode:
            log.info("mode is %s now", orders.mode)
            self._claims.mode = orders.mode
            self._claims.freed.set()
        for key in orders.lost:
            if (attempt := self._held.attempts.get(key)) is not None:
                self._end(attempt, None, hard=True)
        for key in orders.stop:
            if (attempt := self._held.attempts.get(key)) is not None and not attempt.stopping:
                self._end(attempt, Released("stopped on order"), hard=False)

    def _lost_contact(self, attempt: Attempt) -> None:
        lease = attempt.lease
        log.warning("task %s: the lease could not be renewed, so its work was ended", lease.task_id, extra=about(lease))
        self._end(attempt, Released("lost contact"), hard=True)

    def _given_up(self, error: TelecineError) -> None:
        """The engine does not know us any more: end what we had, come back as a new worker unless we were shut out."""
        if isinstance(error, WorkerRevoked):
            self._why = error
            self._shut_out.set()
            return
        gone, self._held.worker = self._held.worker, None
        if gone is None:
            return
        log.warning("worker %s was given up; enlisting again", gone)
        for attempt in self._held.snapshot():
            self._end(attempt, Released("worker was given up"), hard=True)
        if not self._stops:
            self._renewal = asyncio.ensure_future(self._enlist_again())

    def _end(self, attempt: Attempt, farewell: Released | None, *, hard: bool) -> None:
        assert self._execution is not None
        self._execution.stop(attempt, farewell, hard=hard)

    # -- housekeeping, and the end -------------------------------------------------------------------

    async def _sweep_on(self) -> None:
        period, this = round(self._options.sweep * SECOND), object()
        while True:
            try:
                returned = await self._engine.sweep(period)
                if returned is None:
                    break
                self._held.contact.found(this, self._world.mono())
                if returned:
                    self._heart.beat_now()  # it may have been ours: learn of it at once
            except StoreError as error:
                self._held.contact.lost(this, error, self._world.mono())
            except Exception as error:
                self._held.contact.stumbled("the sweep", error, self._world.mono())
            await asyncio.sleep(self._options.sweep * (0.75 + 0.5 * self._world.dice.random()))
        await asyncio.Event().wait()

    async def _barred(self) -> None:
        """Never returns: raises when this worker is shut out, by its key or by an order; its work then ends at once."""
        key, order = asyncio.ensure_future(self._engine.shut_out()), asyncio.ensure_future(self._shut_out.wait())
        try:
            await asyncio.wait({key, order}, return_when=asyncio.FIRST_COMPLETED)
            raise key.result() if key.done() else self._why
        finally:
            key.cancel()
            order.cancel()

    def _stop_now(self) -> None:
        self._engine.hurry()
        self._late = self._world.mono() + (self._options.grace if self._stops == 1 else 0.0)
        self._stopped.set()
        self._claims.over = True
        self._claims.freed.set()

    async def _drained(self) -> None:
        """Wait for the stop, say so, let handlers finish; end them after the grace, or at the second stop."""
        await self._stopped.wait()
        log.info("draining: %s running", self._held.running)
        saying = asyncio.ensure_future(self._say_draining())
        leave_by = float("inf")
        while (self._held.attempts or self._claims.asking) and self._world.mono() < leave_by:
            self._claims.freed.clear()
            if self._world.mono() >= self._late:
                self._late = float("inf")
                leave_by = self._world.mono() + self._options.term + LAST_SECONDS
                for attempt in self._held.snapshot():
                    self._end(attempt, Released("drained"), hard=self._stops > 1)
            with suppress(TimeoutError):
                async with asyncio.timeout(min(0.5, max(0.01, self._late - self._world.mono()))):
                    await self._claims.freed.wait()
        saying.cancel()

    async def _say_draining(self) -> None:
        if self._held.worker is not None:
            with suppress(Exception):  # it is told so that nobody counts on us, and no more
                await self._engine.set_mode(self._held.worker, Mode.DRAINING)
