"""A bell between machines: LISTEN and NOTIFY on one channel per schema.

        ring ──▶ local waiters, at once
             └─▶ NOTIFY, on a connection of its own ──▶ every other process that listens
        commit of a submit, after a quiet while: NOTIFY with it ──▶ the same, a round trip earlier

The first ring goes out at once, further ones at most every 10 ms. Nothing here is needed for correctness: a dead
connection, or a transaction pooler that swallows LISTEN (a probe at the start finds out), costs latency only.

Commits that notify wait for each other, up to the disk: so only whoever submits now and then rings with the commit.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from contextlib import suppress
from hashlib import sha256

import asyncpg

from telecine.dispatch.local import LocalBell
from telecine.dispatch.task_end import BugLog, end
from telecine.world import World

SPACING = 0.010
RESTED = 0.005  # after so long a silence a commit may ring: so at most 200 in a second do, in each process
PROBE_SECONDS = 2.0
CHECK_SECONDS = 20.0
MAX_BACKOFF = 5.0
GOODBYE_SECONDS = 1.0

Connection = asyncpg.Connection


class PostgresBell:
    """Ring from anywhere, wait in the loop that waits first."""

    vague = False

    def __init__(self, url: str, world: World) -> None:
        self._url = url
        self._dice = world.dice
        self._local = LocalBell()
        self._me = world.new_id()  # tells our own words, which were heard here before they went out
        self._mouth = NotifySender(url)
        self._bugs = BugLog()
        self._ear: asyncio.Task[None] | None = None
        self._probed = asyncio.Event()
        self.hears: bool | None = None  # None: not probed yet; False: LISTEN does not work here, polling does

    def ring(self, lanes: Iterable[str]) -> None:
        named = list(lanes)
        if named:
            self._local.ring(named)
            self._mouth.say()

    def nudge(self, lanes: Iterable[str]) -> None:
        """Wake who waits here, and nobody elsewhere."""
        self._local.ring(lanes)

    def word(self) -> tuple[str, str] | None:
        """What a commit may say by itself: nothing if somebody rang lately, or is about to, or nobody knows where."""
        channel = self._mouth.channel
        return (channel, self._me) if channel is not None and self._mouth.takes_turn() else None

    def said(self) -> None:
        self._mouth.was_said()

    async def wait(self, timeout: float) -> None:
        self.listen()
        await self._local.wait(timeout)

    def listen(self) -> None:
        """Begin to listen, if that has not begun; needs a running loop."""
        if self._ear is None:
            self._ear = asyncio.get_running_loop().create_task(self._listen_on())

    async def probe(self) -> bool:
        """Does LISTEN work here? Waits for the first answer."""
        self.listen()
        await self._probed.wait()
        return bool(self.hears)

    async def close(self) -> None:
        if self._ear is not None:
            await end(self._ear)
        await self._mouth.close()
        await self._local.close()

    async def _listen_on(self) -> None:
        broken = 0
        while True:
            connection: Connection | None = None
            try:
                connection = await asyncpg.connect(self._url, timeout=10, command_timeout=10, statement_cache_size=0)
                await self._hear(connection)
                broken = 0
                self._local.wake()  # for every ring while nothing listened
                await self._stay(connection)
            except Exception as error:  # whatever it is, a process that no longer listens would be deaf until it ends
                broken += 1
                self._bugs.tell(error)
            finally:
                if connection is not None:
                    _end_now(connection)
            await asyncio.sleep(min(MAX_BACKOFF, 0.05 * 2 ** min(broken, 10)) * (0.5 + self._dice.random()))

    async def _hear(self, connection: Connection) -> None:
        """LISTEN, and find out whether a NOTIFY of ours comes back."""
        channel = await channel_of(connection)
        echo = asyncio.Event()

        def heard(_: object, pid: int, __: str, payload: object) -> None:
            if payload == "probe":
                echo.set()
            elif pid != self._mouth.pid and payload != self._me:
                self._mouth.was_heard()
                self._local.wake()

        await connection.add_listener(channel, heard)
        await self._say_probe(connection, f"select pg_notify({quoted(channel)}, 'probe')")
        with suppress(TimeoutError):
            async with asyncio.timeout(PROBE_SECONDS):
                await echo.wait()
        self.hears = echo.is_set()
        self._probed.set()

    async def _say_probe(self, connection: Connection, words: str) -> None:
        """By somebody else: behind a pooler one hears one's own words, and nobody else's."""
        try:
            other = await asyncpg.connect(self._url, timeout=10, command_timeout=10, statement_cache_size=0)
        except Exception:  # no room for another one, which is no reason not to listen
            await connection.execute(words)
            return
        try:
            await other.execute(words)
        finally:
            _end_now(other)

    async def _stay(self, connection: Connection) -> None:
        """Return when the connection is gone. A peer that vanished without a word is found by asking."""
        gone = asyncio.Event()
        connection.add_termination_listener(lambda _: gone.set())
        while not gone.is_set():
            try:
                async with asyncio.timeout(CHECK_SECONDS):
                    await gone.wait()
            except TimeoutError:
                await connection.execute("select 1")


class NotifySender:
    """Says NOTIFY: the first time at once, then at most every 10 ms, never in anybody's way."""

    def __init__(self, url: str) -> None:
        self.pid: int | None = None
        self.channel: str | None = None
        self._url = url
        self._connection: Connection | None = None
        self._words = ""
        self._loop: asyncio.AbstractEventLoop | None = None
        self._talk: asyncio.Task[None] | None = None
        self._wanted = False
        self._bugs = BugLog()
        self._last = float("-inf")  # when something was to be said last
        self._stirred = float("-inf")  # when a commit was allowed to say it, or somebody else was heard
        self._covered = False  # the next word went out already, with a commit

    def takes_turn(self) -> bool:
        """Was there nothing to say for a while? Then who asks next is told no. For the loop that says things."""
        loop = asyncio.get_running_loop()
        if loop is not self._loop or loop.time() - max(self._last, self._stirred) < RESTED:
            return False
        self._stirred = loop.time()
        return True

    def was_heard(self) -> None:
        """Somebody else rang; in the loop that listens."""
        loop = asyncio.get_running_loop()
        if loop is self._loop:
            self._stirred = loop.time()

    def was_said(self) -> None:
        self._covered = True
        self._last = asyncio.get_running_loop().time()

    def say(self) -> None:
        try:
            running = asyncio.get_running_loop()
        except RuntimeError:
            running = None
        self._loop = self._loop or running
        if self._loop is None or self._loop.is_closed():
            return
        if running is self._loop:
            self._start()
            return
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._start)

    def _start(self) -> None:
        now = asyncio.get_running_loop().time()
        fresh, self._last = now - self._last < SPACING, now
        if self._covered and fresh:
            self._covered = False
            return
        self._covered, self._wanted = False, True
        if self._talk is None or self._talk.done():
            self._talk = asyncio.get_running_loop().create_task(self._talk_on())

    async def _talk_on(self) -> None:
        while self._wanted:
            self._wanted = False
            if not await self._said():
                await self._said()  # the connection had died unnoticed; a fresh one has not
            await asyncio.sleep(SPACING)

    async def _said(self) -> bool:
        try:
            if self._connection is None or self._connection.is_closed():
                self._connection = await asyncpg.connect(
                    self._url, timeout=5, command_timeout=5, statement_cache_size=0
                )
                # A hint need not survive a power cut, so nobody waits for the disk; nor is anything planned.
                self.channel = await channel_of(self._connection)
                name = self.channel.replace('"', '""')
                self._words = f'begin; set local synchronous_commit = off; notify "{name}"; commit'
                self.pid = self._connection.get_server_pid()
            await self._connection.execute(self._words)
        except Exception as error:  # a ring is only a hint
            self._bugs.tell(error)
            self._drop()
            return False
        return True

    def _drop(self) -> None:
        if self._connection is not None:
            _end_now(self._connection)
        self._connection = self.pid = None

    async def close(self) -> None:
        """The last ring still goes out, if that takes no time."""
        if self._talk is not None and not self._talk.done():
            with suppress(TimeoutError):
                async with asyncio.timeout(GOODBYE_SECONDS):
                    await self._talk
        self._drop()


def _end_now(connection: Connection) -> None:
    with suppress(Exception):  # a transport that is gone already may complain
        connection.terminate()


async def channel_of(connection: Connection) -> str:
    """One channel per schema: databases shared by several installations do not wake each other."""
    schema = str(await connection.fetchval("select current_schema()"))
    name = f"telecine_{schema}"
    return name if len(name.encode()) < 64 else f"telecine_{sha256(schema.encode()).hexdigest()[:32]}"


def quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
