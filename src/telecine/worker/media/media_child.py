"""A media child of an inline handler: started, heard, fed, and gone when the handler's block has ended, in any way.

handler ── order ──▶ child        JSON lines over the channel, both ways
        ◀── lines ──
worker  ◀── start, length ──      16 bytes over `ask`, if the source is not a file;
        ── length, bytes ──▶      8 bytes and what they announce
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import shlex
import signal
import struct
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import ExitStack, asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from telecine.errors import ChildFailed
from telecine.facts import Json
from telecine.flow import MediaChild, Reader
from telecine.worker.media.media_process import ChildForker, MediaProcess, start
from telecine.worker.processes.channel import to_line

MAX_LINE = 64 << 20
MAX_ASKED = 64 << 20
MAX_ORDER = 64 << 10  # of an order that is recorded with its step
TAIL_BYTES = 4_096
TAIL_READ = 1 << 16
MAX_PIPE = 1 << 20  # bytes that wait in a pipe, at most
TOLD_CHARS = 600  # of the tail, in an error's message
LAST_SECONDS = 5.0  # from its last word to its end

_REQUEST = struct.Struct(">QQ")
_REPLY = struct.Struct(">Q")
_NO_MEMORY = re.compile(r"cannot allocate memory|memoryerror|bad_alloc|out of memory", re.IGNORECASE)
_LIMITS = {
    signal.SIGXCPU: ("cpu_limit", "reached its limit of processor time"),
    signal.SIGXFSZ: ("file_limit", "reached its limit for the size of a file"),
}

Say = Callable[[str, str, str, dict[str, Json]], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class ChildOptions:
    """What a child is started with: its program, its folder, how much it yields, how long TERM may take.

    `forker`: who forks it, if anybody does.
    """

    program: str
    folder: Path
    forker: ChildForker | None = None
    nice: int = 0
    term: float = 5.0
    mono: Callable[[], float]
    say: Say


class ChildConversation:
    """The worker's side of the talk. Iterating ends after the child's last word, and fails without one."""

    def __init__(self, process: MediaProcess, order: Json, output: OutputTail) -> None:
        self.process = process
        self.order = order
        self._output = output
        self._reader: asyncio.StreamReader | None = None
        self._writer: asyncio.StreamWriter | None = None
        self.has_ended = False  # by its own last word

    async def begin(self) -> None:
        channel = self.process.channel
        self._reader, self._writer = await asyncio.open_connection(sock=channel, limit=MAX_LINE)
        self._writer.write(to_line({"order": self.order, "files": self.process.files}))

    def __aiter__(self) -> AsyncIterator[dict[str, Json]]:
        return self._lines()

    async def _lines(self) -> AsyncIterator[dict[str, Json]]:
        while not self.has_ended:
            message = await self._hear()
            if "error" in message:
                self.has_ended = True
                raise _refusal(message["error"])
            self.has_ended = "done" in message
            yield message

    async def _hear(self) -> dict[str, Json]:
        assert self._reader is not None
        try:
            line = await self._reader.readline()
        except ConnectionError:
            line = b""
        except ValueError:
            raise ChildFailed(f"the media child said a line of more than {MAX_LINE} bytes", code="garbled") from None
        if not line.endswith(b"\n"):
            raise await self._obituary()
        try:
            message = json.loads(line)
        except ValueError:
            message = None
        if not isinstance(message, dict):
            raise ChildFailed("the media child said something that is no JSON object", code="garbled")
        return message

    async def say(self, message: Json) -> None:
        assert self._writer is not None
        try:
            self._writer.write(to_line(message))
            await self._writer.drain()
        except (ConnectionError, RuntimeError):
            # Its own last word, if it is still on the line, says more: whoever goes on listening will hear it.
            if self._reader is None or self._reader.at_eof():
                raise await self._obituary() from None

    async def _obituary(self) -> ChildFailed:
        """It hung up without a last word: wait for its end, and say how it ended."""
        with suppress(TimeoutError):
            async with asyncio.timeout(LAST_SECONDS):
                await asyncio.shield(self.process.gone)
        end = self.process.end
        code, used = (None, 0) if end is None else (end.exit_code, end.most_bytes)
        return died(code, self._output.drained(), self.order, used)

    def close(self) -> None:
        if self._writer is not None:
            self._writer.transport.abort()


class OutputTail:
    """The end of what the child prints."""

    def __init__(self, handle: int) -> None:
        self._handle = handle
        self._loop = asyncio.get_running_loop()
        self._kept = b""
        self._loop.add_reader(handle, self._read)

    def _read(self) -> bool:
        try:
            data = os.read(self._handle, TAIL_READ)
        except BlockingIOError:
            return False
        except OSError:
            data = b""
        if not data:
            self._loop.remove_reader(self._handle)
            return False
        self._kept = (self._kept + data)[-TAIL_BYTES:]
        return True

    def drained(self) -> str:
        """Everything that is still in the pipe, too."""
        for _ in range(MAX_PIPE // TAIL_READ):  # a child that does not stop printing must not hold us
            if not self._read():
                break
        return self._kept.decode(errors="replace").replace("\0", "").strip()

    def close(self) -> None:
        self._loop.remove_reader(self._handle)


def _refusal(error: Json) -> ChildFailed:
    said = error if isinstance(error, dict) else {}
    message, code = str(said.get("message", "the media child failed")), str(said.get("code", "child_failed"))
    return ChildFailed(message, code=code, permanent=bool(said.get("permanent", False)))


def died(exit_code: int | None, tail: str, order: Json, used: int) -> ChildFailed:
    """What is said of a child that left no last word: how it ended, its limit if it hit one, what it printed last."""
    limit = (order.get("limits") or {}).get("memory") if isinstance(order, dict) else None
    killer = None if exit_code is None or exit_code >= 0 else -exit_code
    code, how = "child_died", f"ended with exit code {exit_code} and without a last word"
    if exit_code is None:
        how = "hung up and does not end"
    elif killer in _LIMITS:
        code, how = _LIMITS[signal.Signals(killer)]
    elif killer is not None:
        how = f"was killed by {_name_of(killer)}"
    full = limit is not None and (used > 0.9 * limit or bool(_NO_MEMORY.search(tail)))
    if full or (limit is None and _NO_MEMORY.search(tail)):
        code = "out_of_memory"
        how += f"; it hit its memory limit of {limit} bytes" if limit is not None else "; memory was short"
    elif killer == signal.SIGKILL:
        how += ", as the kernel does when memory is short"
    last = f"; its last output: {' | '.join(tail[-TOLD_CHARS:].splitlines())}" if tail else ""
    return ChildFailed(f"the media child {how}{last}", code=code)


def _name_of(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


@asynccontextmanager
async def media_child(
    ways: ChildOptions, order: Json, files: Mapping[str, int], source: Reader | None, family: set[MediaProcess]
) -> AsyncIterator[MediaChild]:
    """Run a child while the block lasts. It stands in `family` for as long as it lives, so that others can end it."""
    began = ways.mono()
    try:
        process = await start(ways.program, ways.folder, files, ways.forker, asks=source is not None, nice=ways.nice)
    except OSError as error:
        raise ChildFailed(f"no media child could be started: {error}", code="child_not_started") from error
    with ExitStack() as last:
        last.callback(process.close)
        family.add(process)
        last.callback(family.discard, process)
        output = OutputTail(process.output)
        last.callback(output.close)
        talk = ChildConversation(process, order, output)
        last.callback(talk.close)
        last.callback(lambda: _record(ways, process, order, (output.drained(), ways.mono() - began)))
        serving = None if source is None else asyncio.ensure_future(_serve(process, source, ways.say))
        try:
            await talk.begin()
            yield talk
            if talk.has_ended:
                await _wait(process, LAST_SECONDS)
        finally:
            await _end(process, ways.term, serving)


async def _wait(process: MediaProcess, seconds: float) -> bool:
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await asyncio.shield(process.gone)
    return process.gone.done()


async def _end(process: MediaProcess, term: float, serving: asyncio.Future[None] | None) -> None:
    """TERM, then KILL; at once if we are hurried meanwhile. Not left before it is reaped."""
    hurried: asyncio.CancelledError | None = None
    if not process.gone.done():
        process.send(signal.SIGTERM)
        try:
            await _wait(process, term)
        except asyncio.CancelledError as error:
            hurried = error
        process.send(signal.SIGKILL)
    if serving is not None:
        serving.cancel()
    for end in (process.gone, serving):
        while end is not None and not end.done():
            try:
                await asyncio.wait({end})
            except asyncio.CancelledError as error:
                hurried = error
    if hurried is not None:
        raise hurried


def _record(ways: ChildOptions, process: MediaProcess, order: Json, seen: tuple[str, float]) -> None:
    """The step row: enough to run the same order by hand."""
    tail, wall = seen
    end = process.end
    command = shlex.join(["python", *process.command[1:]])
    data: dict[str, Json] = {"exit_code": None, "tail": tail, "wall_seconds": round(wall, 3)}
    if end is not None:
        used = {"cpu_seconds": round(end.cpu_seconds, 3), "max_rss_bytes": end.most_bytes}
        data |= {"exit_code": end.exit_code, **used}
    if len(to_line({"order": order})) < MAX_ORDER:
        data["order"] = order
    ways.say(command, "error" if data["exit_code"] else "info", "step", data)


async def _serve(process: MediaProcess, source: Reader, say: Say) -> None:
    """Answer requests for bytes, one after the other; an error hangs up, which the child understands."""
    assert process.ask is not None
    reader, writer = await asyncio.open_connection(sock=process.ask, limit=1 << 16)
    try:
        while True:
            start, length = _REQUEST.unpack(await reader.readexactly(_REQUEST.size))
            if length > MAX_ASKED:
                raise ValueError(f"{length} bytes at once are too many")
            data = await source(start, length)
            writer.write(_REPLY.pack(len(data)))
            writer.write(data)
            await writer.drain()
    except (asyncio.IncompleteReadError, ConnectionError):
        return
    except Exception as error:
        say(f"the source could not be read: {type(error).__name__}: {error}", "warning", "log", {})
    finally:
        writer.transport.abort()


if TYPE_CHECKING:

    def _is_a_child(talking: ChildConversation) -> MediaChild:
        return talking
