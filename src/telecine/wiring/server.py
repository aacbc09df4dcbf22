"""The server: engine, application, duties and embedded workers in one process, until a signal."""

from __future__ import annotations

import asyncio
import logging
import signal
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from socket import socket
from typing import Any

import uvicorn

from telecine.api import ServerContext, create_app
from telecine.api.http.rate_limits import RateLimits
from telecine.errors import WorkerRevoked
from telecine.flow import Flow
from telecine.settings import Settings
from telecine.wiring import (
    Parts,
    apps,
    housekeeping,
    installed_flows,
    make_scratch,
    make_worker,
    open_artifacts,
    open_engine,
)
from telecine.wiring.connections import (
    ConnectionBounds,
    ConnectionLimits,
    bounds_for,
    protocols,
    raise_descriptor_limit,
)
from telecine.wiring.observers import counting, observers, traced
from telecine.wiring.patience import wait_for
from telecine.wiring.remote import watching_keys
from telecine.wiring.sockets import bound, reachable, unbindable, url_of
from telecine.wiring.upload_service import attended, upload_room
from telecine.wiring.webhook_sending import posting
from telecine.worker import load_flows
from telecine.worker.flow_source import FlowSource, source_of

log = logging.getLogger(__name__)

GRACE_SECONDS = 10
KEEP_ALIVE_SECONDS = 30
TICKS_PER_SECOND = 10  # of uvicorn's loop
# For whatever waits for a disk. As many as there are cores would soon all read large files, and requests would wait.
THREADS = 32


@dataclass(frozen=True, slots=True)
class ServerAddresses:
    """Where the server listens, how others reach it, and the link that logs its first administrator in."""

    address: str
    public_url: str | None
    link: str | None


async def run_server(settings: Settings, *, workers: int, ready: Callable[[ServerAddresses], None]) -> None:
    """Serve until SIGTERM or SIGINT. A restart touches no lease: they belong to workers, not to servers."""
    asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(THREADS, "telecine"))
    with bound(settings.host, settings.port) as sockets:
        async with open_engine(settings, is_patient=True) as plain, traced(plain, "server") as parts:
            await _serve(parts, sockets, workers, ready)


async def _serve(parts: Parts, sockets: list[socket], workers: int, ready: Callable[[ServerAddresses], None]) -> None:
    settings = parts.settings
    own = installed_flows(settings)
    sources = [source_of(name) for name in settings.flows]
    for flow in [*own, *(flow for source in sources for flow in load_flows(source))]:
        await wait_for(partial(parts.engine.jobs.register, flow), parts.world)
    house = open_house(parts)
    async with AsyncExitStack() as open_now:
        await open_now.enter_async_context(housekeeping(parts, sweep=True))
        await open_now.enter_async_context(posting(parts))
        await open_now.enter_async_context(watching_keys(parts))
        await open_now.enter_async_context(counting(parts))
        await open_now.enter_async_context(attended(house))
        await open_now.enter_async_context(apps.background(parts))
        await open_now.enter_async_context(_embedded(parts, [*own, *sources], workers))
        limits = ConnectionLimits(_bounds(settings))
        ways = {**_ways(settings), **protocols(limits)}
        server = _Server(uvicorn.Config(create_app(house), **ways), house, sockets, limits)
        await server.listen(lambda port: _announce(house, port, ready))
        log.info("server has stopped")


def open_house(parts: Parts) -> ServerContext:
    settings = parts.settings
    artifacts = open_artifacts(settings)
    return ServerContext(
        engine=parts.engine,
        keys=parts.engine.keys,
        artifacts=artifacts,
        settings=settings,
        world=parts.world,
        bell=parts.bell,
        news=parts.news,
        rates=RateLimits(
            parts.world.mono,
            per_key=settings.rate_limit,
            per_stranger=settings.bad_key_limit,
            per_worker=settings.worker_rate_limit,
        ),
        rooms=upload_room(parts),
        **observers(parts, artifacts),
        **apps.for_house(parts),
    )


def _ways(settings: Settings) -> dict[str, Any]:
    return {
        "host": settings.host,
        "port": settings.port,
        "loop": "none",
        "log_config": None,
        "access_log": False,
        "server_header": False,
        "proxy_headers": bool(settings.trusted_proxies),
        "forwarded_allow_ips": list(settings.trusted_proxies),
        "timeout_graceful_shutdown": GRACE_SECONDS,
        "timeout_keep_alive": KEEP_ALIVE_SECONDS,
        "ws_max_size": 64 << 10,
    }


def _bounds(settings: Settings) -> ConnectionBounds:
    return bounds_for(
        settings.max_connections,
        settings.max_connections_per_address,
        raise_descriptor_limit(),
        settings.trusted_proxies,
        header_seconds=settings.header_timeout_seconds,
        body_seconds=settings.body_timeout_seconds,
        idle_seconds=KEEP_ALIVE_SECONDS,
    )


class _Server(uvicorn.Server):
    """Says when it listens; tells whoever waits in the house that it is about to stop."""

    def __init__(
        self, config: uvicorn.Config, house: ServerContext, bound_to: list[socket], limits: ConnectionLimits
    ) -> None:
        super().__init__(config)
        self._house, self._bound_to, self._limits = house, bound_to, limits
        self._listening: asyncio.Event = asyncio.Event()

    async def listen(self, listening: Callable[[int], object]) -> None:
        serving = asyncio.create_task(self.serve(self._bound_to))
        heard = asyncio.create_task(self._listening.wait())
        await asyncio.wait({serving, heard}, return_when=asyncio.FIRST_COMPLETED)
        heard.cancel()
        if not serving.done():
            port = self.servers[0].sockets[0].getsockname()[1]
            told = listening(port)
            if asyncio.iscoroutine(told):
                await told
        await serving

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Stop at the first, hurry at the second. uvicorn would raise them again at its own end: then the process
        dies before its duties have ended and its embedded worker has given back what it holds."""
        loop, signals = asyncio.get_running_loop(), (signal.SIGTERM, signal.SIGINT)
        for number in signals:
            loop.add_signal_handler(number, self._asked_to_stop)
        try:
            yield
        finally:
            for number in signals:
                loop.remove_signal_handler(number)

    def _asked_to_stop(self) -> None:
        self.force_exit = self.should_exit
        self.should_exit = True

    async def startup(self, sockets: list[socket] | None = None) -> None:
        try:
            await super().startup(sockets)
        except OSError as error:  # another has begun to listen since it was bound
            raise unbindable(self.config.host, self.config.port, error) from error
        self._listening.set()

    async def on_tick(self, counter: int) -> bool:
        if counter % TICKS_PER_SECOND == 0:
            self._limits.look(asyncio.get_running_loop().time())
        return await super().on_tick(counter)

    async def shutdown(self, sockets: list[socket] | None = None) -> None:
        self._house.closing.set()
        await super().shutdown(sockets)


async def _announce(house: ServerContext, port: int, ready: Callable[[ServerAddresses], None]) -> None:
    settings = house.settings
    address = url_of(settings.host, port)
    base = settings.public_url or reachable(settings.host, port)
    link = f"{base}/login/{await house.keys.link()}" if await house.keys.is_locked_out() else None
    ready(ServerAddresses(address, settings.public_url, link))
    log.info("server listens on %s", address)


@asynccontextmanager
async def _embedded(parts: Parts, flows: list[Flow | FlowSource], slots: int) -> AsyncIterator[None]:
    """A worker inside the server, with so many slots; what it holds at the end is given back."""
    if not slots:
        yield
        return
    settings = parts.settings.model_copy(update={"slots": slots})
    make_scratch(settings.scratch)
    own = replace(parts, settings=settings)
    worker = make_worker(own, flows, await apps.machine_labels(own.world))
    running = asyncio.create_task(worker.run(), name="worker")
    running.add_done_callback(_tell_if_it_died)
    try:
        yield
    finally:
        worker.stop()
        worker.stop()
        with suppress(WorkerRevoked):  # it has been gone for long
            await running


def _tell_if_it_died(running: asyncio.Task[None]) -> None:
    """At once, not when the server ends: nobody would know why nothing is done."""
    if running.cancelled() or (error := running.exception()) is None:
        return
    if isinstance(error, WorkerRevoked):
        log.warning("the worker inside this server has ended: %s; a restart of the server brings it back", error)
    else:
        log.error("the worker inside this server has died, restart it: %s", error, exc_info=error)
