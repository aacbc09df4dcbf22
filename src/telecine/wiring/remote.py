"""Workers over HTTP, both ends: the worker that has a server in place of a database, and what a server does for it."""

from __future__ import annotations

import asyncio
import logging
import stat
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

from telecine import worker as working
from telecine.engine.leases.remote_workers import RemoteWorkers
from telecine.errors import BadSpec
from telecine.plural import counted
from telecine.settings import Settings
from telecine.wire.registration import TermsResponse, listed_name
from telecine.wiring import Parts, apps, installed_flows, make_scratch
from telecine.wiring.observers import open_tracing
from telecine.worker.contact import Contact
from telecine.worker.flow_source import FlowSource
from telecine.worker.http import HttpBell, HttpEngine, Server, ShutOutSignal
from telecine.worker.outbox import insist
from telecine.world import World

log = logging.getLogger(__name__)

LOOK_SECONDS = 2.0
OTHERS = stat.S_IRWXO


# -- the worker -----------------------------------------------------------------------------------------


async def run_remote_worker(settings: Settings, sources: Sequence[FlowSource], *, world: World | None = None) -> None:
    """Work for a server until SIGTERM or SIGINT; `KeyInvalid` when it shuts this worker out."""
    world = world or World()
    if settings.server_url is None:
        raise BadSpec("a worker over HTTP needs the address of its server: --server https://…")
    key, barred = read_key(settings.key_file), ShutOutSignal()
    make_scratch(settings.scratch)

    def server() -> Server:
        assert settings.server_url is not None
        return Server(settings.server_url, key, barred)

    @asynccontextmanager
    async def beat_words() -> AsyncIterator[HttpEngine]:
        async with server() as own:
            yield HttpEngine(own, barred, world)

    async with server() as line, AsyncExitStack() as open_now:
        words = HttpEngine(line, barred, world)
        terms = await _terms(words, barred, world)
        tracing = await open_now.enter_async_context(open_tracing(settings, terms.trace, "worker"))
        if tracing is not None:
            line.trace_headers = tracing.headers
        flows = installed_flows(settings, shared=terms.shared)
        options = working.WorkerOptions(
            name=settings.worker_name,
            scratch=settings.scratch,
            slots=settings.slots,
            labels=tuple(dict.fromkeys((*settings.labels, *await apps.machine_labels(world)))),
            media_nice=settings.media_nice,
            grace=settings.drain_grace_seconds,
            poll=settings.poll_seconds,
            beat=min(settings.beat_seconds, terms.lease_ms / 1_000 / 4),
            lease=terms.lease_ms,
            observer=tracing,
        )
        worker = working.Worker(words, HttpBell(words), [*flows, *sources], options, world, beat_words)
        worker.obey_signals()
        listed = listed_name(words.key_name or settings.worker_name, settings.worker_name)
        log.info("worker %s works for %s with %s", listed, settings.server_url, counted(settings.slots, "slot"))
        await worker.run()
        log.info("worker %s has left", listed)


async def _terms(words: HttpEngine, barred: ShutOutSignal, world: World) -> TermsResponse:
    """Wait for the server as long as it takes; a key that it does not know ends it."""
    asking = asyncio.ensure_future(insist(words.terms, world, Contact()))
    shut = asyncio.ensure_future(barred.wait())
    try:
        await asyncio.wait({asking, shut}, return_when=asyncio.FIRST_COMPLETED)
        if shut.done():
            raise shut.result()
        return asking.result()
    finally:
        for one in (asking, shut):
            one.cancel()


def read_key(path: Path | None) -> str:
    """The key in a file that others cannot read."""
    if path is None:
        raise BadSpec("a worker over HTTP needs its key: --key-file FILE, as `telecine workers register` made it")
    try:
        about, text = path.stat(), path.read_text().strip()
    except (OSError, UnicodeDecodeError) as error:
        raise BadSpec(f"the key in {path} cannot be read: {getattr(error, 'strerror', None) or error}") from error
    if about.st_mode & OTHERS:
        raise BadSpec(f"everybody on this machine may read the key in {path}: `chmod 600 {path}` first")
    if not text:
        raise BadSpec(f"there is no key in {path}")
    if not text.startswith("tcn_worker_"):
        raise BadSpec(
            f"what is in {path} is no worker's key, those look like tcn_worker_…: `telecine workers register`"
        )
    return text


# -- the server -----------------------------------------------------------------------------------------


@asynccontextmanager
async def watching_keys(parts: Parts) -> AsyncIterator[None]:
    """While the body runs: whoever came with a key that is not valid any more is shut out, wherever it was revoked."""
    duty = asyncio.create_task(_watch(parts), name="keys")
    try:
        yield
    finally:
        duty.cancel()
        await asyncio.gather(duty, return_exceptions=True)


async def _watch(parts: Parts) -> None:
    remotes, world = RemoteWorkers(parts.engine), parts.world
    while True:
        with parts.engine.outages.at("look at the keys of workers"):
            if count := await remotes.sweep():
                log.warning("stopped %s: the key is not valid any more", counted(count, "worker"))
        await asyncio.sleep(LOOK_SECONDS * (0.75 + 0.5 * world.dice.random()))
