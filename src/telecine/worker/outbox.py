"""Outcomes on their way to the engine: whatever is ready goes together, until each has an answer."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import TypeVar

from telecine.errors import Rejected, StoreError, TelecineError
from telecine.facts import JUST_DONE, Answer, Done, Fact, Failed, Line, Released, Word
from telecine.worker.contact import Contact
from telecine.worker.current import Observer, about
from telecine.worker.held import Attempt, Held
from telecine.worker.words import Words
from telecine.world import World

log = logging.getLogger(__name__)

MOST_AT_ONCE = 500
MOST_PAUSE = 2.0
UNSAYABLE = "bad_result"

T = TypeVar("T")


class Outbox:
    """One settle is in flight at a time; what becomes ready meanwhile is the next batch.

    A word is repeated until the engine has answered it. The repeat is harmless: the same word under the same token
    gets the first answer, and a word that came too late is refused.
    """

    def __init__(self, words: Words, held: Held, world: World, settled: Callable[[], None]) -> None:
        self._words = words
        self._held = held
        self._world = world
        self._settled = settled
        self.observer: Observer | None = None
        self._ready: list[tuple[Attempt, Fact]] = []
        self._wake = asyncio.Event()
        self.unsettled = 0

    def say(self, attempt: Attempt, fact: Fact) -> None:
        """Queue the last word about an attempt; it stays held, and is renewed, until that is answered."""
        if not self._ready:
            self._wake.set()
        self._ready.append((attempt, fact))
        self.unsettled += 1

    async def run(self) -> None:
        """For ever: settle what is ready."""
        while True:
            await self._wake.wait()
            self._wake.clear()
            while self._ready:
                await self._settle_some()

    async def _settle_some(self) -> None:
        some = self._ready[:MOST_AT_ONCE]
        del self._ready[:MOST_AT_ONCE]
        lines = self._held.take_lines()
        if lines:  # before the outcome: a later attempt may follow at once, and late lines are dropped
            await self._write(lines)
        await self._settle(some)
        self._settled()

    async def _write(self, lines: list[Line]) -> None:
        try:
            await insist(lambda: self._words.log(lines), self._world, self._held.contact)
        except Exception:
            log.exception("%s log lines could not be stored", len(lines))

    async def _settle(self, some: list[tuple[Attempt, Fact]]) -> None:
        words = [Word(attempt.lease.task_id, attempt.lease.token, fact) for attempt, fact in some]
        try:
            answers = await insist(lambda: self._words.settle(words), self._world, self._held.contact)
        except Exception as error:
            # One outcome that cannot be stored must not take its neighbours along.
            if len(some) > 1:
                for one in some:
                    await self._settle([one])
                return
            self._unsayable(*some[0], error)
            return
        self.unsettled -= len(some)
        held, watched = self._held, self.observer is not None
        for (attempt, fact), answer in zip(some, answers, strict=True):
            if fact is JUST_DONE and answer.accepted and not watched:  # so it is with most, and they may be many
                held.done += 1
                held.attempts.pop(attempt.key, None)
            else:
                self._hear(attempt, fact, answer)

    def _unsayable(self, attempt: Attempt, fact: Fact, error: Exception) -> None:
        lease = attempt.lease
        log.error("task %s: its outcome cannot be stored: %r", lease.task_id, error, extra=about(lease))
        self.unsettled -= 1
        if isinstance(fact, Failed) and fact.code == UNSAYABLE:
            self._held.attempts.pop(attempt.key, None)  # the lease will run out
        else:
            why = f"the outcome cannot be stored: {type(error).__name__}"
            self.say(attempt, Failed(why, code=UNSAYABLE, permanent=True))

    def _hear(self, attempt: Attempt, fact: Fact, answer: Answer) -> None:
        lease = attempt.lease
        if self.observer is not None:
            self.observer.settled(lease, answer)
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
    ask: Callable[[], Awaitable[T]], world: World, contact: Contact, unless: Callable[[], object] = bool
) -> T:
    """Ask until the database answers, or `unless` says that it no longer matters; jittered pauses of at most 2 s."""
    pause, this = 0.05, object()
    try:
        while True:
            try:
                answer = await ask()
            except Rejected:
                raise
            except StoreError as error:
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
            pause = min(pause * 2, MOST_PAUSE)
    finally:
        contact.forget(this)
