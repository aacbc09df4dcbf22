"""The beat: a thread, a loop and a connection of its own, so that no handler can stop it.

        loop thread                         heart thread
        ───────────                         ────────────
        claims, runs, settles      held     every 5 s: name what is held ──▶ engine
             ▲                  ◀────────▶  renewed until (time before sending + lease)
             └──── orders: mode, lost, stop ──┘
                                            every moment: whose lease nears its end unrenewed? kill its child

The worker's own clock can only make it stop early. An inline handler that blocks the loop is no longer named: it
loses its own lease, while those of its neighbours go on.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable
from contextlib import suppress

from telecine.errors import StoreError, TelecineError, WorkerGone, WorkerRevoked
from telecine.facts import Orders
from telecine.triage import Verdict, triage
from telecine.worker.attempts import Attempt, HeldAttempts, holding_of
from telecine.worker.engine_api import EngineApi, OpenEngine, WorkerOptions
from telecine.world import World

log = logging.getLogger(__name__)

FIRST_PAUSE = 0.1


class HeartbeatThread:
    """Renews what is held; tells the loop what came back. Started once per worker."""

    def __init__(self, held: HeldAttempts, options: WorkerOptions, world: World, open_engine: OpenEngine) -> None:
        self._held = held
        self._options = options
        self._world = world
        self._open_engine = open_engine
        self._thread: threading.Thread | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._poke = asyncio.Event()
        self._ended = False
        self._main: asyncio.AbstractEventLoop | None = None
        self._obey: Callable[[Orders], None] = lambda orders: None
        self._gone: Callable[[TelecineError], None] = lambda error: None
        self._lost_contact: Callable[[Attempt], None] = lambda attempt: None
        self._ticked = world.mono()
        self._tick_asked = False
        self._pause = FIRST_PAUSE  # after a beat that failed; grows until one succeeds

    def start(
        self,
        *,
        obey: Callable[[Orders], None],
        gone: Callable[[TelecineError], None],
        lost_contact: Callable[[Attempt], None],
    ) -> None:
        """Begin to beat. The three functions are called in the thread of the loop that runs now."""
        self._obey, self._gone, self._lost_contact = obey, gone, lost_contact
        self._main = asyncio.get_running_loop()
        self._ticked = self._world.mono()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._live()), name="telecine-beat", daemon=True)
        self._thread.start()

    def beat_now(self) -> None:
        loop = self._loop
        if loop is not None:
            with suppress(RuntimeError):
                loop.call_soon_threadsafe(self._poke.set)

    async def stop(self) -> None:
        self._ended = True
        self.beat_now()
        if self._thread is not None:
            await asyncio.to_thread(self._thread.join, 5.0)

    # -- in the heart's own thread -----------------------------------------------------------------

    async def _live(self) -> None:
        self._loop = asyncio.get_running_loop()
        watch = self._loop.create_task(self._watch())
        await self._rest_a_beat()  # who has enlisted just now has said that he lives
        while not self._ended:
            try:
                async with self._open_engine() as engine:
                    await self._beat_on(engine)
            except (StoreError, TimeoutError) as error:
                self._held.contact.lost(self, error, self._world.mono())
                await self._rest(self._pause * (0.75 + 0.5 * self._world.dice.random()))
                self._pause = min(self._pause * 2, self._options.beat / 2)
            except Exception as error:
                self._held.contact.stumbled("the heartbeat", error, self._world.mono())
                await self._rest(self._options.beat / 2)
        watch.cancel()

    async def _beat_on(self, engine: EngineApi) -> None:
        while not self._ended:
            await self._once(engine)
            self._pause = FIRST_PAUSE
            self._held.contact.found(self, self._world.mono())
            await self._rest_a_beat()

    async def _rest_a_beat(self) -> None:
        await self._rest(self._options.beat * (0.9 + 0.2 * self._world.dice.random()), news=True)

    async def _rest(self, seconds: float, *, news: bool = False) -> None:
        """Wait; a poke ends it, and so does news that is a second old."""
        end = self._world.mono() + seconds
        while (left := end - self._world.mono()) > 0 and not (self._poke.is_set() or self._ended):
            with suppress(TimeoutError):
                async with asyncio.timeout(min(left, self._options.news)):
                    await self._poke.wait()
            if news and self._held.news:
                break
        self._poke.clear()

    async def _once(self, engine: EngineApi) -> None:
        """One beat, and what it brought."""
        worker = self._held.worker
        if worker is None:
            return
        self._held.news = False
        named = self._named()
        holdings = [holding_of(attempt) for attempt in named]
        sent = self._world.mono()
        patience = max(self._options.beat, self._options.lease_seconds / 4)
        try:
            async with asyncio.timeout(patience):
                orders = await engine.beat(worker, holdings, self._held.totals())
        except (WorkerGone, WorkerRevoked) as error:
            self._tell(self._gone, error)
            return
        except Exception:
            for attempt in named:
                attempt.news = attempt.progress is not None
            raise
        self._renew(named, orders, sent)
        self._tell(self._obey, orders)
        await self._write_lines(engine)

    def _named(self) -> list[Attempt]:
        """Everything held, but not the inline handler that has kept the loop from turning for a whole beat."""
        attempts = self._held.snapshot()
        hog = self._hog()
        return [attempt for attempt in attempts if hog is None or attempt.task is not hog]

    def _hog(self) -> object:
        now = self._world.mono()
        if not self._tick_asked:
            self._tick_asked = True
            self._tell(self._tick)
            return None
        if self._main is None or now - self._ticked < 2 * self._options.beat:
            return None
        return asyncio.current_task(self._main)

    def _tick(self) -> None:
        self._ticked = self._world.mono()
        self._tick_asked = False

    def _renew(self, named: list[Attempt], orders: Orders, sent: float) -> None:
        renewed = set(orders.renewed)
        for attempt in named:
            if attempt.key in renewed:
                attempt.until = sent + self._options.lease_seconds

    async def _write_lines(self, engine: EngineApi) -> None:
        lines = self._held.take_lines()
        if not lines:
            return
        try:
            await engine.log(lines)
        except Exception as error:
            if triage(error) is not Verdict.OUTAGE:  # whoever wrote a line that cannot be stored does without it
                self._held.contact.stumbled("the log", error, self._world.mono())
                return
            self._held.give_back_lines(lines)
            raise

    async def _watch(self) -> None:
        """Kill what nears the end of its lease: by then somebody else may be about to begin it."""
        margin = self._options.margin
        while True:
            now = self._world.mono()
            for attempt in self._held.snapshot():
                if attempt.life == "working" and not attempt.killed and now > attempt.until - margin:
                    self._kill(attempt)
            await asyncio.sleep(margin / 4)

    def _kill(self, attempt: Attempt) -> None:
        attempt.killed = attempt.stopping = True
        try:
            if attempt.interrupt is not None:
                attempt.interrupt(True)
        except Exception:  # those that come after it must be ended, too
            log.exception("task %s could not be ended", attempt.lease.task_id)
        self._tell(self._lost_contact, attempt)

    def _tell(self, function: Callable[..., None], *arguments: object) -> None:
        if self._main is not None:
            with suppress(RuntimeError):  # the loop is closed: there is nobody left to tell
                self._main.call_soon_threadsafe(function, *arguments)
