"""Outcomes on their way to the engine: whatever is ready goes together, until each has an answer."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

from telecine.errors import Refused, Rejected, StoreBroken, StoreError, TelecineError, TooLarge, Unreachable
from telecine.facts import JUST_DONE, Done, Fact, Failed, LeaseOutcome, LogEntry, Released, SettleReply
from telecine.plural import counted
from telecine.triage import Verdict, triage
from telecine.worker.attempts import Attempt, HeldAttempts, Key
from telecine.worker.contact import Contact
from telecine.worker.current import Observer, about
from telecine.worker.engine_api import EngineApi
from telecine.world import World

log = logging.getLogger(__name__)

MAX_AT_ONCE = 500
FIRST_PAUSE, MAX_PAUSE = 0.05, 2.0
UNSAYABLE = "bad_result"
MAX_REASON = 500
# What the database, or the server before it, says about the value of an outcome. Other refusals are about the request.
ABOUT_VALUE = (Rejected, Refused, TooLarge)
# So long an outcome is said again while a bug of ours keeps it from being taken.
BUG_SECONDS = 300.0
# So long outcomes are said together while the database seems to be away. It may be away for one of them alone: a
# statement that takes too long, or asks for more than the server has. Then each is tried by itself.
TOGETHER_SECONDS = 30.0
# After so many in a row that failed alone it is the database, and the rest is said together again.
MAX_FAILED_ALONE = 5

T = TypeVar("T")


Said = tuple[Attempt, Fact]


@dataclass(slots=True)
class _Trouble:
    """An outcome that was not taken although it was said alone: since when, and how long until the next try."""

    since: float
    pause: float = FIRST_PAUSE


class Outbox:
    """One settle is in flight at a time; what becomes ready meanwhile is the next batch.

    An outcome that was not taken alone is said apart from then on, by a second loop: nothing else waits for it.

    A word is repeated until the engine has answered it. The repeat is harmless: the same word under the same token
    gets the first answer, and a word that came too late is refused.

    Finished work is called failed only if the database refuses this very value when it is said alone. An outage is
    waited for without end. A bug of ours is waited for, too, for some minutes: the schema may be restored just now, or
    the server be replaced by a sound one. Then the lease is given back, and the work is done again elsewhere.
    """

    def __init__(self, engine: EngineApi, held: HeldAttempts, world: World, settled: Callable[[], None]) -> None:
        self._engine = engine
        self._held = held
        self._world = world
        self._settled = settled
        self.observer: Observer | None = None
        self._ready: list[Said] = []
        self._wake = asyncio.Event()
        self._apart: asyncio.Queue[Said] = asyncio.Queue()
        self._troubles: dict[Key, _Trouble] = {}
        self.unsettled = 0

    def say(self, attempt: Attempt, fact: Fact) -> None:
        """Queue the last word about an attempt; it stays held, and is renewed, until that is answered."""
        self.unsettled += 1
        if self._troubles and attempt.key in self._troubles:
            self._apart.put_nowait((attempt, fact))
            return
        if not self._ready:
            self._wake.set()
        self._ready.append((attempt, fact))

    async def run(self) -> None:
        """For ever: settle what is ready."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._settle_ready())
            group.create_task(self._settle_apart())

    async def _settle_ready(self) -> None:
        while True:
            await self._wake.wait()
            self._wake.clear()
            while self._ready:
                await self._settle_some()

    async def _settle_some(self) -> None:
        some = self._ready[:MAX_AT_ONCE]
        del self._ready[:MAX_AT_ONCE]
        lines = self._held.take_lines()
        if lines:  # before the outcome: a later attempt may follow at once, and late lines are dropped
            await self._write(lines)
        await self._settle(some)
        self._settled()

    async def _write(self, lines: list[LogEntry]) -> None:
        try:
            await insist(lambda: self._engine.log(lines), self._world, self._held.contact)
        except Exception:
            log.exception("could not store %s", counted(len(lines), "log line"))

    async def _settle(self, some: list[Said]) -> None:
        until = self._world.mono() + TOGETHER_SECONDS
        try:
            ask, contact = partial(self._ask, some), self._held.contact
            answers = await insist(ask, self._world, contact, lambda: self._world.mono() > until, again=Unreachable)
        except Exception as error:
            # One outcome that cannot be stored must not take its neighbours along.
            if len(some) == 1:
                self._not_taken(*some[0], error)
            else:
                await self._settle_alone(some)
            return
        self._answered(some, answers)

    async def _settle_alone(self, some: list[Said]) -> None:
        """Try each once, by itself."""
        failed = 0
        for place, one in enumerate(some, 1):
            error = await self._try(one)
            failed = failed + 1 if isinstance(error, Unreachable) else 0
            if failed == MAX_FAILED_ALONE and (rest := some[place:]):
                self._ready[:0] = rest
                return

    async def _settle_apart(self) -> None:
        while True:
            await self._try(await self._apart.get())
            self._settled()

    async def _try(self, one: Said) -> Exception | None:
        began = self._world.mono()
        try:
            answers = await self._ask([one])
        except Exception as error:
            self._not_taken(*one, error, took=self._world.mono() - began)
            return error
        self._answered([one], answers)
        return None

    async def _ask(self, some: list[Said]) -> list[SettleReply]:
        words = [LeaseOutcome(attempt.lease.task_id, attempt.lease.token, fact) for attempt, fact in some]
        answers = await self._engine.settle(words)
        if len(answers) != len(words):
            raise StoreBroken(f"{len(words)} outcomes got {len(answers)} answers")
        return answers

    def _answered(self, some: list[Said], answers: list[SettleReply]) -> None:
        self.unsettled -= len(some)
        if self._troubles:
            for attempt, _ in some:
                self._troubles.pop(attempt.key, None)
        held, watched = self._held, self.observer is not None
        for (attempt, fact), answer in zip(some, answers, strict=True):
            if fact is JUST_DONE and answer.accepted and not watched:  # so it is with most, and they may be many
                held.done += 1
                held.attempts.pop(attempt.key, None)
            else:
                self._hear(attempt, fact, answer)

    # -- what was not taken, although it was said alone ------------------------------------------------

    def _not_taken(self, attempt: Attempt, fact: Fact, error: Exception, took: float = 0.0) -> None:
        """Only an error about this value fails the task. After any other the outcome is kept and said again.

        The pause is at least as long as the try took: a statement that runs into its time limit holds locks meanwhile.
        """
        self.unsettled -= 1
        lease = attempt.lease
        if triage(error) is Verdict.REFUSED and isinstance(error, ABOUT_VALUE):
            log.error("task %s: its outcome cannot be stored: %s", lease.task_id, error, extra=about(lease))
            self._unsayable(attempt, error, fact)
            return
        now = self._world.mono()
        trouble = self._troubles.setdefault(attempt.key, _Trouble(since=now))
        if trouble.pause == FIRST_PAUSE:
            fault = error if not isinstance(error, TelecineError) else None  # of ours, so its place is wanted, too
            words = (lease.task_id, str(error) or type(error).__name__)
            log.error("task %s: its outcome is not taken, trying on: %s", *words, extra=about(lease), exc_info=fault)
        if triage(error) is not Verdict.OUTAGE and now - trouble.since > BUG_SECONDS:
            self._give_back(attempt, fact)
            return
        self.unsettled += 1
        pause = max(took, trouble.pause) * (0.5 + self._world.dice.random())
        asyncio.get_running_loop().call_later(pause, self._say_again, attempt, fact)
        trouble.pause = min(2 * trouble.pause, MAX_PAUSE)

    def _say_again(self, attempt: Attempt, fact: Fact) -> None:
        self.unsettled -= 1
        self.say(attempt, fact)

    def _unsayable(self, attempt: Attempt, error: Exception, fact: Fact) -> None:
        self._troubles.pop(attempt.key, None)
        if isinstance(fact, Failed) and fact.code == UNSAYABLE:
            self._held.attempts.pop(attempt.key, None)  # the lease will run out
        else:
            # The cause alone: our own words may name the place of the database, and owners of jobs read this.
            why = f"the outcome cannot be stored: {error.__cause__ or error}"[:MAX_REASON]
            self.say(attempt, Failed(why, code=UNSAYABLE, permanent=True))

    def _give_back(self, attempt: Attempt, fact: Fact) -> None:
        """After so long another worker, perhaps of another release, may have more luck; nothing is called failed."""
        log.error("task %s: its outcome was not taken for %g s", attempt.lease.task_id, BUG_SECONDS)
        self._troubles.pop(attempt.key, None)
        if isinstance(fact, Released):
            self._held.attempts.pop(attempt.key, None)  # the lease will run out
        else:
            self.say(attempt, Released("the outcome could not be stored"))

    def _hear(self, attempt: Attempt, fact: Fact, answer: SettleReply) -> None:
        lease = attempt.lease
        if self.observer is not None:
            try:
                self.observer.settled(lease, answer)
            except Exception:
                log.exception("task %s: its end could not be traced", lease.task_id, extra=about(lease))
        if answer.accepted:
            if isinstance(fact, Done):
                self._held.done += 1
            elif isinstance(fact, Failed):
                self._held.failed += 1
                place = f"task {lease.task_id} (job {lease.job_id}, {lease.stage}[{lease.position}])"
                told = (place, lease.attempt, lease.max_attempts, fact.message)
                log.warning("%s: attempt %s of %s failed: %s", *told, extra=about(lease))
        elif answer.code == "job_cancelled":
            # Done came too late. Say that nobody works on it, so that the job can end now.
            self.say(attempt, Released("cancelled"))
            return
        else:
            said = type(fact).__name__
            log.warning("task %s: %s was refused: %s", lease.task_id, said, answer.code, extra=about(lease))
        self._held.attempts.pop(attempt.key, None)


async def insist(
    ask: Callable[[], Awaitable[T]],
    world: World,
    contact: Contact,
    unless: Callable[[], object] = bool,
    *,
    again: type[StoreError] = StoreError,
) -> T:
    """Ask until the database answers, or `unless` says that it no longer matters; jittered pauses of at most 2 s.

    `again` is what is asked again after; what the database says about the request itself is raised in any case.
    """
    pause, this = FIRST_PAUSE, object()
    try:
        while True:
            try:
                answer = await ask()
            except Rejected:
                contact.found(this, world.mono())
                raise
            except again as error:
                if unless():
                    raise
                contact.lost(this, error, world.mono())
            except TelecineError:
                contact.found(this, world.mono())
                raise
            else:
                contact.found(this, world.mono())
                return answer
            await asyncio.sleep(pause * (0.5 + world.dice.random()))
            pause = min(pause * 2, MAX_PAUSE)
    finally:
        contact.forget(this)
