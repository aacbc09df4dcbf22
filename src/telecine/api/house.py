"""What every route can reach."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Protocol, cast

from fastapi import Depends
from starlette.requests import HTTPConnection

from telecine.api.rates import Rates
from telecine.artifacts import Artifacts
from telecine.engine import Engine
from telecine.engine.keys import Caller, Keys
from telecine.facts import Json, Kept, Lease
from telecine.settings import Settings
from telecine.world import World


class Bell(Protocol):
    """A bell, as whoever waits for work or news sees it."""

    async def wait(self, timeout: float) -> None: ...


class Inspector(Protocol):
    """Looks at what an untrusted worker has made, before it is recorded; raises what is wrong with it."""

    async def __call__(self, lease: Lease, kept: Kept, artifacts: Artifacts) -> None: ...


class SpecCheck(Protocol):
    """Whether a caller may submit this spec; raises `Refused`, `NotAllowed` or `NotFound` with one sentence."""

    async def __call__(self, spec: Json, caller: Caller) -> None: ...


@dataclass(slots=True)
class House:
    """The open parts of one server, handed in by wiring."""

    engine: Engine
    keys: Keys
    artifacts: Artifacts
    settings: Settings
    world: World
    bell: Bell
    rates: Rates
    # By flow: how its workers' results are looked at. A flow without one is believed.
    inspectors: Mapping[str, Inspector] = field(default_factory=dict)
    # By flow: what a caller may ask of it (a path on the server's disk is not everybody's business).
    checks: Mapping[str, SpecCheck] = field(default_factory=dict)
    # Set when the server is about to stop: whoever waits, ends.
    closing: asyncio.Event = field(default_factory=asyncio.Event)
    # What single subjects keep for the life of the server (hub of live events, guard of uploads, …), by name.
    rooms: dict[str, Any] = field(default_factory=dict)


def house_of(connection: HTTPConnection) -> House:
    return cast(House, connection.app.state.house)


Here = Annotated[House, Depends(house_of)]
