"""Ask for work: while there are free slots, all of them at once; else wait for a ring, or for what a look shows."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from functools import partial

from telecine.dispatch import Bell
from telecine.errors import StoreError, WorkerGone
from telecine.facts import HeldLease, Lease, Mode
from telecine.worker.attempts import Attempt, HeldAttempts
from telecine.worker.engine_api import EngineApi, WorkerOptions
from telecine.worker.outbox import Outbox, insist
from telecine.world import World


class Claims:
    """The claiming half of the loop. `freed` is set when a slot, or the right to claim, may have come free."""

    def __init__(
        self, engine: EngineApi, bell: Bell, lanes: Mapping[str, str], options: WorkerOptions, world: World
    ) -> None:
        self._engine = engine
        self._bell = bell
        self._lanes = lanes
        self._options = options
        self._world = world
        self.freed = asyncio.Event()
        self.mode = Mode.ACTIVE
        self.over = False  # nothing more is claimed
        self.asking = False  # a claim is in flight

    async def run(self, held: HeldAttempts, outbox: Outbox, start: Callable[[Attempt], None]) -> None:
        """Claim until `over`, then only wait: the drain decides when the work has ended."""
        while not self.over:
            wanted = self._wanted(held, outbox)
            if wanted == 0:
                self.freed.clear()
                await self.freed.wait()
            elif await self._claim_some(wanted, held, start) < wanted:
                try:
                    await self._wait_for_work(held, outbox)
                except Exception as error:
                    held.contact.stumbled("the look for work", error, self._world.mono())
                    await asyncio.sleep(self._options.poll)
        await asyncio.Event().wait()

    def _wanted(self, held: HeldAttempts, outbox: Outbox) -> int:
        """Free slots; none while outcomes pile up, or while we are not to claim.

        One batch of outcomes may be under way while the next tasks are claimed and run, no more.
        """
        if self.mode is not Mode.ACTIVE or held.worker is None or outbox.unsettled > self._options.slots:
            return 0
        return max(0, self._options.slots - held.running)

    async def _claim_some(self, wanted: int, held: HeldAttempts, start: Callable[[Attempt], None]) -> int:
        self.asking = True
        try:
            return await self._claim_once(wanted, held, start)
        except WorkerGone:
            return 0  # the heart hears of it, too, and comes back as a new worker
        except Exception as error:
            # Whatever it is, what runs already must not suffer from it.
            held.contact.stumbled("the claim", error, self._world.mono())
            return 0
        finally:
            self.asking = False
            self.freed.set()

    async def _claim_once(self, wanted: int, held: HeldAttempts, start: Callable[[Attempt], None]) -> int:
        worker, request, asked = held.worker, self._world.new_id(), self._world.mono()
        assert worker is not None
        ask = partial(self._engine.claim, worker, request, self._lanes, wanted)
        try:
            leases = await insist(ask, self._world, held.contact, lambda: self.over)
        except StoreError:
            return 0  # we are leaving; whatever was granted is given back when we retire
        until = asked + self._options.lease_seconds
        if leases and self._world.mono() > until - self._options.lease_seconds / 2:
            leases, until = await self._confirm(leases, held)
        if worker != held.worker:
            return wanted  # meanwhile given up: what was granted to the old worker is not ours
        for lease in leases:
            start(Attempt(lease, until))
        return len(leases)

    async def _confirm(self, leases: list[Lease], held: HeldAttempts) -> tuple[list[Lease], float]:
        """The answer took so long that the leases may be old: renew them before any work begins."""
        worker, asked = leases[0].worker, self._world.mono()
        named = [HeldLease(task_id=lease.task_id, token=lease.token) for lease in leases]
        orders = await insist(partial(self._engine.beat, worker, named, held.totals()), self._world, held.contact)
        renewed = set(orders.renewed)
        still = [lease for lease in leases if (lease.task_id, lease.token) in renewed]
        return still, asked + self._options.lease_seconds

    async def _wait_for_work(self, held: HeldAttempts, outbox: Outbox) -> None:
        """Until a ring; or until a look shows something: each second, jittered, and at each ring where rings are vague.

        A look only reads. A claim in vain is a write: a fleet with nothing to do would keep the disk busy.
        """
        while not self.over and self._wanted(held, outbox):
            pause, begun = self._options.poll * (0.75 + 0.5 * self._world.dice.random()), self._world.mono()
            await self._bell.wait(pause)
            was_woken = self._world.mono() < begun + pause
            if (was_woken and not self._bell.vague) or await self._sees_work():
                return

    async def _sees_work(self) -> bool:
        try:
            return await self._engine.glance(self._lanes)
        except StoreError:
            return True
