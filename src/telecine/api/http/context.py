"""What every route can reach."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Protocol, cast

from fastapi import APIRouter, Depends
from starlette.requests import HTTPConnection

from telecine.api.http.rate_limits import RateLimits
from telecine.api.http.request_id import RequestObserver
from telecine.api.openapi.notes import ApiNotes
from telecine.artifacts import Artifacts
from telecine.engine import Engine
from telecine.engine.accounts.keys import Caller, Keys
from telecine.engine.queries.health import FullHealth, Health
from telecine.facts import Json, KeptArtifact, Lease
from telecine.settings import Settings
from telecine.world import World

if TYPE_CHECKING:
    from telecine.api.routes.apps import AppView


class WaitableBell(Protocol):
    """A bell, as whoever waits for work or news sees it."""

    async def wait(self, timeout: float) -> None: ...


# All bytes of an artifact, which hash to what is recorded of it; `ValueError` if they do not.
ReadKept = Callable[[KeptArtifact], Awaitable[bytes]]


class ArtifactInspector(Protocol):
    """Looks at what an untrusted worker has made, before it is recorded; raises what is wrong with it."""

    async def __call__(self, lease: Lease, kept: KeptArtifact, read: ReadKept) -> None: ...


class SourceLender(Protocol):
    """Which file on the server's disk the source of a lease's job is, and its identity: size, time of change, inode.

    None: it is none. `facts` are those of the subject; raises what is wrong with a file that cannot be read.
    """

    def __call__(self, lease: Lease, facts: Mapping[str, Json]) -> tuple[Path, tuple[int, ...]] | None: ...


class SpecCheck(Protocol):
    """Whether a caller may submit this spec; raises `Refused`, `NotAllowed` or `NotFound` with one sentence."""

    async def __call__(self, spec: Json, caller: Caller) -> None: ...


class HealthReport(Protocol):
    """Tells how this server is; never raises, and never takes long."""

    async def health(self) -> Health: ...

    async def full(self) -> FullHealth: ...


@dataclass(slots=True)
class ServerContext:
    """The open parts of one server, handed in by wiring."""

    engine: Engine
    keys: Keys
    artifacts: Artifacts
    settings: Settings
    world: World
    bell: WaitableBell
    rates: RateLimits
    vitals: HealthReport
    # All metrics, as Prometheus reads them.
    metrics: Callable[[], Awaitable[bytes]]
    # From which workers make the ids of traces; none: nothing is traced.
    trace_seed: str | None = None
    # Who hears of every request.
    watchers: tuple[RequestObserver, ...] = ()
    # Takes path template, method and status of responses whose counters must be 0 before the first of them.
    expect_responses: Callable[[Iterable[tuple[str, str, int]]], None] | None = None
    # By flow: how its workers' results are looked at. A flow without one is believed.
    inspectors: Mapping[str, ArtifactInspector] = field(default_factory=dict)
    # By flow: what remote workers may read of the server's disk. A flow without one: nothing.
    lenders: Mapping[str, SourceLender] = field(default_factory=dict)
    # Facts about subjects by which the server itself goes, such as where a source lies: no worker may say them.
    own_facts: frozenset[str] = frozenset()
    # By flow: what a caller may ask of it (a path on the server's disk is not everybody's business).
    checks: Mapping[str, SpecCheck] = field(default_factory=dict)
    # Rings when events were written, by any process; without one, `bell` is the next best.
    news: WaitableBell | None = None
    # Apps: what is installed, their routes, and what the description of the API says about those.
    apps: Callable[[], tuple[AppView, ...]] = tuple
    app_routers: tuple[APIRouter, ...] = ()
    api_notes: ApiNotes = field(default_factory=ApiNotes)
    # Set when the server is about to stop: whoever waits, ends.
    closing: asyncio.Event = field(default_factory=asyncio.Event)
    # What single subjects keep for the life of the server (hub of live events, guard of uploads, …), by name.
    rooms: dict[str, Any] = field(default_factory=dict)


def house_of(connection: HTTPConnection) -> ServerContext:
    return cast(ServerContext, connection.app.state.house)


async def _here(connection: HTTPConnection) -> ServerContext:
    # Async, since FastAPI sends every other dependency to a thread, which costs more than most routes.
    return house_of(connection)


Here = Annotated[ServerContext, Depends(_here)]
