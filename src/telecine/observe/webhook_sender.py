"""The postman: turns events into letters, and brings each to its receiver, again and again until it is taken.

Every server has one; they share the work by the database. What a receiver does (refuse, redirect, stall, never end)
costs tries of its own letters: only so many are on their way at once, fewer to one host, and to one that has
failed several times in a row just one at a time. Jobs know nothing of it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import dataclass

from telecine.engine.maintenance.background import OutageLog
from telecine.engine.webhooks.deliveries import Deliveries, DueDelivery
from telecine.engine.webhooks.delivery_builder import AlertRules
from telecine.errors import StoreError
from telecine.facts import HOUR, SECOND, Millis, Policy
from telecine.observe.webhook_bodies import body_of
from telecine.observe.webhook_request import DeliveryNotSent, ReceiverReply, WebhookRequestSender
from telecine.observe.webhook_signature import signed
from telecine.plural import counted
from telecine.retry import backoff
from telecine.world import World

log = logging.getLogger(__name__)

# Between tries: 10 s, then four times as long each time, at most 6 h: eight tries are spread over ten hours or so.
PATIENCE = Policy(base=10 * SECOND, cap=6 * HOUR, jitter=0.2)
# How long a sender may need beyond the receiver's time before another takes the letter over.
MARGIN: Millis = 5 * SECOND
FAILURES_IN_A_ROW = 5
MAX_HOSTS_KNOWN = 1_000
PRUNE_SECONDS = 600.0
AFTER_A_FAULT = 5.0
LAST_SECONDS = 3.0
GONE = 410


@dataclass(frozen=True, slots=True, kw_only=True)
class WebhookSenderOptions:
    """How the postman goes about it."""

    alert_url: str | None = None
    alert_format: str = "plain"
    public_url: str | None = None
    attempts: int = 8
    timeout: float = 10.0
    at_once: int = 16
    per_host: int = 4
    poll: float = 1.0
    patience: Policy = PATIENCE

    @property
    def lease(self) -> Millis:
        return round(self.timeout * SECOND) + MARGIN


class WebhookSender:
    def __init__(
        self,
        mail: Deliveries,
        sender: WebhookRequestSender,
        ways: WebhookSenderOptions,
        world: World,
        *,
        duties: OutageLog,
        rules: AlertRules | None = None,
    ) -> None:
        self._mail = mail
        self._sender = sender
        self._ways = ways
        self._world = world
        self._duties = duties
        self._rules = rules
        self._out: set[asyncio.Task[None]] = set()
        self._failures: dict[str, int] = {}
        self._prune_at = 0.0

    async def run(self) -> None:
        """Until cancelled; what is on its way then gets a moment to arrive. Anything else is sent again later."""
        try:
            while True:
                seconds = self._ways.poll * (0.75 + 0.5 * self._world.dice.random())
                with self._duties.at("deliveries") as look:
                    if await self.once():
                        seconds = 0.0
                await self._rest(seconds * AFTER_A_FAULT if look.failed else seconds)
        finally:
            await self._come_home()

    async def once(self) -> bool:
        """One look: write letters, take those that are due, be off with them. True: there is more to do at once."""
        posted = await self._mail.collect(self._rules)
        if posted.missed:
            missed = counted(posted.missed, "event")
            log.warning("%s pruned before any webhook was sent: no server ran for days", missed)
        room = self._ways.at_once - len(self._out)
        letters: Sequence[DueDelivery] = ()
        if room > 0:
            slow = {host: 1 for host, count in self._failures.items() if count >= FAILURES_IN_A_ROW}
            letters = await self._mail.take(room, per_host=self._ways.per_host, lease=self._ways.lease, limits=slow)
        for letter in letters:
            task = asyncio.create_task(self._bring(letter), name=f"delivery {letter.id}")
            self._out.add(task)
            task.add_done_callback(self._out.discard)
        await self._tidy()
        return posted.more

    async def _rest(self, seconds: float) -> None:
        """A while, or until a letter has been brought: its host may have others waiting."""
        pause = asyncio.create_task(asyncio.sleep(seconds))
        try:
            await asyncio.wait({*self._out, pause}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            pause.cancel()

    async def _come_home(self) -> None:
        if self._out:
            await asyncio.wait(self._out, timeout=LAST_SECONDS)
        for task in self._out:
            task.cancel()
        await asyncio.gather(*self._out, return_exceptions=True)

    async def _tidy(self) -> None:
        if self._world.mono() < self._prune_at:
            return
        self._prune_at = self._world.mono() + PRUNE_SECONDS
        if gone := await self._mail.prune():
            log.info("deleted %s that ended long ago", counted(gone, "delivery", "deliveries"))

    # -- one letter ------------------------------------------------------------------------------

    async def _bring(self, letter: DueDelivery) -> None:
        try:
            answer, error = await self._send(letter)
            await self._note(letter, answer, error)
        except StoreError as fault:
            log.warning("delivery %s went out, and that could not be noted; it will go out again: %s", letter.id, fault)
        except Exception:
            log.exception("delivery %s failed by a fault of ours", letter.id)

    async def _send(self, letter: DueDelivery) -> tuple[ReceiverReply | None, str | None]:
        """The answer, or why there is none."""
        is_alert = letter.webhook_id is None
        url = self._ways.alert_url if is_alert else letter.url
        if url is None or letter.disabled or letter.tries > self._ways.attempts:
            return None, None
        shape = self._ways.alert_format if is_alert else letter.format or "plain"
        body = body_of(letter.kind, letter.facts, shape, self._ways.public_url)
        try:
            answer = await self._sender.send(url, body, signed(letter.name, letter.at // SECOND, body, letter.key))
        except DeliveryNotSent as error:
            return None, str(error)
        return answer, None if 200 <= answer.status < 300 else _refusal(answer.status)

    async def _note(self, letter: DueDelivery, answer: ReceiverReply | None, error: str | None) -> None:
        status = None if answer is None else answer.status
        if answer is not None and error is None:
            self._failures.pop(letter.host, None)
            await self._mail.taken(letter, answer.status)
            return
        if error is None:
            await self._mail.give_up(letter, None, "its webhook is gone or off, or its senders died on the way")
            return
        self._count(letter.host)
        if status == GONE and letter.webhook_id is not None:
            await self._mail.switch_off(letter.webhook_id)
        if status == GONE or letter.tries >= self._ways.attempts:
            tries = counted(letter.tries, "attempt")
            log.warning("delivery %s to %s is given up after %s: %s", letter.id, letter.host, tries, error)
            await self._mail.give_up(letter, status, error)
            return
        # Each try doubles the wait twice.
        wait = backoff(self._ways.patience, 2 * letter.tries - 1, self._world.dice)
        pause = 0 if answer is None else round(answer.pause * SECOND)
        log.info(
            "delivery %s to %s is tried again in %s s: %s", letter.id, letter.host, max(wait, pause) // SECOND, error
        )
        await self._mail.later(letter, status, error, max(wait, pause))

    def _count(self, host: str) -> None:
        if len(self._failures) >= MAX_HOSTS_KNOWN:
            self._failures.clear()
        self._failures[host] = self._failures.get(host, 0) + 1


def _refusal(status: int) -> str:
    if 300 <= status < 400:
        return f"it answered {status}: redirects are not followed; give the address that they lead to"
    if status == GONE:
        return "it answered 410: the webhook is off now"
    return f"it answered {status}"
