"""All routes together."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from importlib.metadata import version
from typing import Any

from fastapi import APIRouter, FastAPI
from fastapi.routing import APIRoute, iter_route_contexts
from starlette.middleware.cors import CORSMiddleware
from starlette.routing import BaseRoute
from starlette.types import ASGIApp

from telecine.api import (
    docs,
    flows,
    health,
    jobs,
    keys,
    live,
    login,
    media,
    page,
    problems,
    stats,
    tasks,
    uploads,
    videos,
    webhooks,
    workers,
)
from telecine.api import worker as remote
from telecine.api.house import House
from telecine.api.openapi import described
from telecine.api.walls import Walls
from telecine.api.watch import Watch

ABOUT = """Durable media processing over HTTP.

Send a key as `Authorization: Bearer tcn_…`. Errors are `application/problem+json` with one sentence and a stable
`code`. Lists have a `next` cursor. Times are milliseconds since 1970 by the database's clock."""

# What is asked most comes first: routes are tried in this order.
ROUTERS = (
    jobs.router, remote.router, live.router, tasks.router, videos.router, media.router, uploads.router, flows.router,
    workers.router, keys.router, webhooks.router, stats.router, login.router, health.router,
    docs.router,
)  # fmt: skip


class Application(FastAPI):
    """Watched from outside of everything, so that also an answer to our own bug has an id and is counted."""

    def build_middleware_stack(self) -> ASGIApp:
        house: House = self.state.house
        return Watch(super().build_middleware_stack(), house.watchers, house.world.mono, house.world.new_id)

    def openapi(self) -> dict[str, Any]:
        if self.openapi_schema is None:
            self.openapi_schema = described(super().openapi(), self.routes)
        return self.openapi_schema


def flat(routers: Iterable[APIRouter]) -> Iterator[BaseRoute]:
    """All routes in one list: FastAPI would look through each router, and what it includes, twice at every request.

    So a prefix belongs to the router whose routes need it, not to one that includes others.
    """
    for context in iter_route_contexts([route for router in routers for route in router.routes]):
        route = context.original_route
        if context.path != getattr(route, "path", None):
            raise ValueError(f"{context.path} has its prefix from a router around its own")
        if isinstance(route, APIRoute):
            route.unique_id = _read_well(route)
        yield route


def _read_well(route: APIRoute) -> str:
    """What clients that are made from the schema call it: `get_job`, `worker_claim`."""
    return route.name if "_" in route.name or not route.tags else f"{route.tags[0]}_{route.name}"


def create_app(house: House) -> FastAPI:
    """The server's application; the page comes last, since it answers to every other address."""
    app = Application(
        title="Telecine",
        description=ABOUT,
        version=version("telecine"),
        docs_url=None,
        redoc_url=None,
        separate_input_output_schemas=False,
    )
    app.state.house = house
    problems.install(app)
    app.router.routes.extend(flat(ROUTERS))
    page.install(app)
    if house.settings.allowed_origins:
        app.add_middleware(
            CORSMiddleware,
            allow_origins=list(house.settings.allowed_origins),
            allow_methods=["*"],
            allow_headers=["*"],
            expose_headers=["*"],
        )
    app.add_middleware(Walls, most_body=house.settings.max_body_bytes)
    return app
