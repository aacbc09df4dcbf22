"""One attempt in a child process, from the order to the outcome."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from base64 import b64encode
from collections import deque
from collections.abc import Awaitable
from pathlib import Path
from typing import Any

from telecine.errors import BadSpec, HandlerStopped, TelecineError
from telecine.facts import Brief, Fact, Failed, Json, KeptArtifact, Released
from telecine.wire.codec import fact_from_json, from_json, to_json
from telecine.worker.attempts import Attempt, HeldAttempts
from telecine.worker.engine_api import WorkerOptions
from telecine.worker.flow_source import FlowSource
from telecine.worker.handlers.recorder import Recorder
from telecine.worker.handlers.scratch import Scratch
from telecine.worker.processes.channel import MAX_BYTES, order_to, to_line
from telecine.worker.processes.child import Child

LAST_SECONDS = 2.0
TAIL_LINES = 20
TAIL_CHARS = 600
MAX_LINES = 1_000


async def run_in_child(
    attempt: Attempt,
    order: tuple[Brief, FlowSource],
    parts: tuple[HeldAttempts, Recorder, Scratch],
    options: WorkerOptions,
) -> Fact:
    """Start the child, talk with it until it ends, and say what came of it."""
    held, recorder, scratch = parts
    try:
        folder = scratch.folder(attempt.key)
        child = Child(options.term)
    except OSError as error:
        return Released(f"no child could be started: {error}")
    talk = AttemptConversation(child, attempt, (held, recorder, scratch))
    attempt.interrupt = talk.stop
    output = ChildOutput(child.output, attempt, held)
    if attempt.stopping:
        child.stop(True)
    try:
        told = order_to(attempt.lease, *order, str(folder), sys.path)
        files = None if recorder.folder is None else str(recorder.folder)
        fact = await talk.hold(to_line({**told, "artifacts": files}))
        await child.collect()
        output.drain()
        return fact or _died(child.exit_code, output.tail())
    finally:
        output.close()
        child.close()


class AttemptConversation:
    def __init__(self, child: Child, attempt: Attempt, parts: tuple[HeldAttempts, Recorder, Scratch]) -> None:
        self._child = child
        self._attempt = attempt
        self._held, self._recorder, self._scratch = parts
        self._writer: asyncio.StreamWriter | None = None
        self._asks: set[asyncio.Task[None]] = set()
        self._fact: Fact | None = None

    async def hold(self, order: bytes) -> Fact | None:
        """Until the child is gone; its own word about the outcome, if it came to that."""
        reader, writer = await asyncio.open_connection(sock=self._child.channel, limit=MAX_BYTES)
        self._writer = writer
        writer.write(order)
        listening = asyncio.ensure_future(self._listen(reader))
        try:
            await asyncio.wait({listening, self._child.gone}, return_when=asyncio.FIRST_COMPLETED)
            # Either has said its last word and is about to end, or has died and left some words on the line.
            await asyncio.wait({listening}, timeout=LAST_SECONDS)
            if not self._child.gone.done():
                await asyncio.wait({self._child.gone}, timeout=LAST_SECONDS)
            if not self._child.gone.done():
                self._child.stop(True)
                await self._child.gone
        finally:
            listening.cancel()
            for ask in self._asks:
                ask.cancel()
            writer.close()
        return self._fact

    async def _listen(self, reader: asyncio.StreamReader) -> None:
        while self._fact is None:
            try:
                line = await reader.readline()
            except (ValueError, ConnectionError):  # too long, or cut off
                return
            if not line.endswith(b"\n"):
                return
            self._hear(json.loads(line))

    def _hear(self, message: dict[str, Any]) -> None:
        match message["say"]:
            case "progress":
                self._held.report(self._attempt, message["fraction"], message["note"])
            case "line":
                self._held.line(self._attempt, message["message"], message["level"], message["kind"], message["data"])
            case "end":
                self._fact = fact_from_json(message["fact"])
                if message["trace"] is not None:
                    why = getattr(self._fact, "message", "the handler failed")
                    self._held.line(self._attempt, why, "error", data={"traceback": message["trace"]})
            case _:
                self._answer(message["n"], self._asked(message))

    async def _asked(self, message: dict[str, Any]) -> Json:
        """What a handler asks for and waits for; the answer as it travels."""
        attempt, recorder = self._attempt, self._recorder
        match message["say"]:
            case "checkpoint":
                return await recorder.checkpoint(attempt, message["name"], message["value"])
            case "keep":
                name, path, facts, sha256 = (message[part] for part in ("name", "path", "facts", "sha256"))
                return to_json(await recorder.keep(attempt, name, Path(path), facts, sha256))
            case "intact":
                return await recorder.intact(
                    attempt, self._held, from_json(KeptArtifact, message["kept"]), message["check"]
                )
            case "artifacts":
                return [to_json(one) for one in await recorder.artifacts(attempt, message["stages"])]
            case "published":
                return [to_json(one) for one in await recorder.published(attempt)]
            case "fetch":
                return str(await recorder.fetch(attempt, self._scratch, from_json(KeptArtifact, message["kept"])))
            case "read":
                data = await recorder.read(
                    attempt, from_json(KeptArtifact, message["kept"]), message["start"], message["length"]
                )
                return b64encode(data).decode()
            case other:
                raise BadSpec(f"a handler's process asked for {other!r}, which is not known")

    def _answer(self, number: int, work: Awaitable[Json]) -> None:
        task = asyncio.ensure_future(self._answer_when_done(number, work))
        self._asks.add(task)
        task.add_done_callback(self._asks.discard)

    async def _answer_when_done(self, number: int, work: Awaitable[Json]) -> None:
        answer: dict[str, Json] = {"n": number}
        try:
            answer["value"] = await work
        except HandlerStopped as error:
            answer["stopped"] = str(error)
        except (TelecineError, OSError) as error:
            answer["refused"] = str(error)
        if self._writer is not None and not self._writer.is_closing():
            self._writer.write(to_line(answer))

    def stop(self, hard: bool) -> None:
        """Hard: from any thread. Kindly: from the loop; the handler hears of it before the signal comes."""
        if not hard and self._writer is not None and not self._writer.is_closing():
            self._writer.write(to_line({"stop": True}))
        self._child.stop(hard)


class ChildOutput:
    """What the handler prints: log lines while there are not too many, and a tail for its obituary."""

    def __init__(self, handle: int, attempt: Attempt, held: HeldAttempts) -> None:
        self._handle = handle
        self._attempt = attempt
        self._held = held
        self._rest = b""
        self._tail: deque[str] = deque(maxlen=TAIL_LINES)
        self._count = 0
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(handle, self._read)

    def _read(self) -> bool:
        try:
            data = os.read(self._handle, 1 << 16)
        except BlockingIOError:
            return False
        except OSError:
            data = b""
        if not data:
            self._loop.remove_reader(self._handle)
            return False
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            self._line(line)
        if len(self._rest) > 1 << 16:
            self._line(self._rest)
            self._rest = b""
        return True

    def _line(self, raw: bytes) -> None:
        text = raw.decode(errors="replace").replace("\0", "").rstrip()
        if not text:
            return
        self._count += 1
        self._tail.append(text[:TAIL_CHARS])
        if self._count <= MAX_LINES:
            self._held.line(self._attempt, text, data={"stream": "output"})

    def drain(self) -> None:
        """Everything that is still in the pipe; nobody writes to it any more."""
        while self._read():
            pass
        self._line(self._rest)
        self._rest = b""
        if self._count > MAX_LINES:
            skipped = {"stream": "output", "left_out": self._count - MAX_LINES, "tail": list(self._tail)}
            self._held.line(self._attempt, "too much output; the last lines", "warning", data=skipped)

    def tail(self) -> str:
        return " | ".join(self._tail)[-TAIL_CHARS:]

    def close(self) -> None:
        self._loop.remove_reader(self._handle)


def _died(code: int | None, tail: str) -> Failed:
    """The obituary of a child that left no outcome, in one sentence."""
    if code is None:
        how = "vanished together with its supervisor"
    elif code < 0:
        how = f"was killed by {_signal_name(-code)}"
    else:
        how = f"exited with code {code} and left no outcome"
    last = f"; its last output: {tail}" if tail else ""
    return Failed(f"the handler's process {how}{last}", code="child_died")


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
