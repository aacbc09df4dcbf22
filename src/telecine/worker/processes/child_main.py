"""Inside the child: `python -m telecine.worker.processes.child_main`, one attempt of one handler.

Started by `telecine.worker.processes.child` alone, which hands over two sockets: the channel, over which the handler
speaks, and the lifeline, which its supervisor watches. The handler runs in the main thread; a second thread listens to
the worker.
"""

from __future__ import annotations

import inspect
import json
import os
import signal
import socket
import sys
import threading
import time
from base64 import b64decode
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

from telecine.errors import BadFlow, BadSpec, HandlerStopped
from telecine.facts import Brief, Fact, Failed, Json, KeptArtifact, Lease, StoredArtifact
from telecine.flow import Handler, LentSource, MediaChild, Reader
from telecine.wire.codec import fact_to_json, from_json, to_json
from telecine.worker.flow_source import FlowSource, load_flows
from telecine.worker.handlers.bench import ONLY_INLINE, FinishedAwaitable, HandlerBench
from telecine.worker.handlers.outcome import of_error, of_return, trace_of
from telecine.worker.processes import supervisor
from telecine.worker.processes.channel import to_line

PROGRESS_SECONDS = 0.05


def _as_it_is(value: Json) -> Json:
    return value


class ChildChannel:
    """The child's end: says lines, and hands each answer to whoever asked."""

    def __init__(self, channel: socket.socket) -> None:
        self.stopping = False
        self._socket = channel
        self._file = channel.makefile("rb")
        self._saying = threading.Lock()
        self._asks: dict[int, Callable[[dict[str, Json]], None]] = {}
        self._count = 0

    def order(self) -> dict[str, Any]:
        line = self._file.readline()
        if not line:
            os._exit(0)  # the worker changed its mind
        order: dict[str, Any] = json.loads(line)
        threading.Thread(target=self._listen, name="telecine-channel", daemon=True).start()
        return order

    def say(self, **message: Json) -> None:
        line = to_line(message)
        with self._saying:
            self._socket.sendall(line)

    def ask(self, read: Callable[[Json], Any] = _as_it_is, **message: Json) -> Awaitable[Any]:
        """Say it and get the answer: at once in plain code, to be awaited in a coroutine."""
        self._count += 1
        number = self._count
        loop = _running_loop()
        if loop is None:
            waiting = _Waiting()
            self._asks[number] = waiting.give
            self.say(**message, n=number)
            return FinishedAwaitable(read(_answer(waiting.take())))
        future = loop.create_future()
        self._asks[number] = lambda answer: loop.call_soon_threadsafe(future.set_result, answer)
        self.say(**message, n=number)
        return _awaited(future, read)

    def _listen(self) -> None:
        for line in self._file:
            message = json.loads(line)
            if "stop" in message:
                self.stopping = True
            elif (give := self._asks.pop(message["n"], None)) is not None:
                give(message)


class _Waiting:
    def __init__(self) -> None:
        self._event = threading.Event()
        self._answer: dict[str, Json] = {}

    def give(self, answer: dict[str, Json]) -> None:
        self._answer = answer
        self._event.set()

    def take(self) -> dict[str, Json]:
        self._event.wait()
        return self._answer


def _running_loop() -> Any:
    """The event loop of the calling thread; plain code must not pay for importing asyncio."""
    asyncio = sys.modules.get("asyncio")
    return None if asyncio is None else asyncio._get_running_loop()


async def _awaited(future: Awaitable[dict[str, Json]], read: Callable[[Json], Any]) -> Any:
    return read(_answer(await future))


def _answer(message: dict[str, Json]) -> Json:
    if "stopped" in message:
        raise HandlerStopped(message["stopped"])
    if "refused" in message:
        raise ValueError(message["refused"])
    return message["value"]


def _kept(value: Json) -> KeptArtifact:
    return from_json(KeptArtifact, value)


def _shelves(value: Json) -> list[StoredArtifact]:
    return [from_json(StoredArtifact, item) for item in value]


class ChannelIo:
    """How the handler in the child is heard."""

    def __init__(self, channel: ChildChannel, scratch: Path, artifacts: str | None) -> None:
        self._channel = channel
        self._scratch = scratch
        self._artifacts = artifacts
        self._told = 0.0

    @property
    def stopping(self) -> bool:
        return self._channel.stopping

    def progress(self, fraction: float, note: str | None) -> None:
        now = time.monotonic()
        if now - self._told >= PROGRESS_SECONDS or fraction >= 1.0:
            self._told = now
            self._channel.say(say="progress", fraction=fraction, note=note)

    def line(self, message: str, level: str, kind: str, data: dict[str, Json] | None) -> None:
        self._channel.say(say="line", message=message, level=level, kind=kind, data=data)

    def checkpoint(self, name: str, value: Json) -> Awaitable[None]:
        return self._channel.ask(say="checkpoint", name=name, value=value)

    def keep(self, name: str, path: Path, facts: dict[str, Json], sha256: str | None) -> Awaitable[KeptArtifact]:
        message = {"say": "keep", "name": name, "path": str(Path(path).absolute()), "facts": facts, "sha256": sha256}
        return self._channel.ask(_kept, **message)

    def intact(self, kept: KeptArtifact, check: bool) -> Awaitable[bool]:
        return self._channel.ask(say="intact", kept=to_json(kept), check=check)

    def artifacts(self, stages: tuple[str, ...]) -> Awaitable[list[StoredArtifact]]:
        return self._channel.ask(_shelves, say="artifacts", stages=stages)

    def published(self) -> Awaitable[list[StoredArtifact]]:
        return self._channel.ask(_shelves, say="published")

    def fetch(self, kept: KeptArtifact) -> Awaitable[Path]:
        return self._channel.ask(Path, say="fetch", kept=to_json(kept))

    def read(self, kept: KeptArtifact, start: int, length: int | None) -> Awaitable[bytes]:
        return self._channel.ask(b64decode, say="read", kept=to_json(kept), start=start, length=length)

    def locate(self, kept: KeptArtifact) -> Path | None:
        return None if self._artifacts is None or kept.key is None else Path(self._artifacts) / kept.key

    def child(
        self, order: Json, files: Mapping[str, int], source: Reader | None, module: str
    ) -> AbstractAsyncContextManager[MediaChild]:
        raise BadSpec(ONLY_INLINE)

    def lend(self) -> LentSource | None:
        return None

    def scratch(self) -> Path:
        return self._scratch


def perform(channel: ChildChannel, order: dict[str, Any]) -> tuple[Fact, str | None]:
    """Load the flow, run the handler, and turn whatever comes of it into a fact."""
    sys.path[:] = order["path"]
    lease = from_json(Lease, order["lease"])
    bench = HandlerBench(
        lease, from_json(Brief, order["brief"]), ChannelIo(channel, Path(order["scratch"]), order["artifacts"])
    )
    try:
        handler = _handler(from_json(FlowSource, order["source"]), lease.flow, lease.stage)
        with _Stop(channel):
            returned: object = handler(bench)
            if inspect.iscoroutine(returned):
                import asyncio  # noqa: PLC0415 - only async handlers pay for it

                returned = asyncio.run(returned)
    except BadFlow as error:
        return Failed(str(error), code=error.code), None
    except BaseException as error:
        return of_error(error), None if isinstance(error, HandlerStopped) else trace_of(error)
    return of_return(returned), None


def _handler(source: FlowSource, flow: str, stage: str) -> Handler:
    for found in load_flows(source):
        if found.name == flow and stage in found.handlers:
            return found.handlers[stage]
    raise BadFlow(
        f"{source} has no stage {stage!r} of a flow {flow!r} any more: was it changed under a running worker?"
    )


class _Stop:
    """While the handler runs, TERM ends it by an exception, so that its `finally` blocks run."""

    def __init__(self, channel: ChildChannel) -> None:
        self._channel = channel

    def __enter__(self) -> None:
        signal.signal(signal.SIGTERM, self._raise)

    def __exit__(self, *_: object) -> None:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)

    def _raise(self, number: int, frame: object) -> None:
        self._channel.stopping = True
        raise HandlerStopped("told to stop")


def main() -> None:
    lifeline, channel, worker = (int(argument) for argument in sys.argv[1:4])
    supervisor.split(lifeline, worker, float(sys.argv[4]))
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(line_buffering=True, errors="replace")  # type: ignore[union-attr]
    line = ChildChannel(socket.socket(fileno=channel))
    fact, trace = perform(line, line.order())
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    line.say(say="end", fact=fact_to_json(fact), trace=trace)
    os._exit(0)  # threads that the handler left behind shall not keep its slot


if __name__ == "__main__":
    main()
