"""All routes together."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from importlib.metadata import version
from typing import Any

from fastapi import APIRouter, FastAPI
from starlette.middleware.cors import CORSMiddleware
from starlette.routing import BaseRoute
from starlette.types import ASGIApp

from telecine.api import live, uploads
from telecine.api import worker as remote
from telecine.api.http import problems
from telecine.api.http.context import ServerContext
from telecine.api.http.request_id import RequestIdMiddleware
from telecine.api.http.request_limits import RequestLimits
from telecine.api.http.routing import FAILURES, Route, flat, possible_failures
from telecine.api.openapi.schema import described
from telecine.api.routes import apps, docs, flows, health, jobs, keys, login, page, stats, tasks, webhooks, workers

ABOUT = """Durable media processing over HTTP.

Send a key as `Authorization: Bearer tcn_…`. Errors are `application/problem+json` with one sentence and a stable
`code`. Lists have a `next` cursor. Times are milliseconds since 1970 by the database's clock."""

# What is asked most comes first: routes are tried in this order.
BEFORE_APPS = (*jobs.routers, *remote.routers, *live.routers, tasks.router)
AFTER_APPS = (
    *uploads.routers, flows.router, apps.router, workers.router, keys.router, webhooks.router, stats.router,
    login.router, health.router, docs.router,
)  # fmt: skip


def platform_routes() -> Iterator[BaseRoute]:
    """All routes but those of apps."""
    return flat((*BEFORE_APPS, *AFTER_APPS))


def all_routes(of_apps: Iterable[APIRouter]) -> Iterator[BaseRoute]:
    """All routes, in the order in which they are tried."""
    return flat((*BEFORE_APPS, *of_apps, *AFTER_APPS))


class Application(FastAPI):
    """Watched from outside of everything, so that also an answer to our own bug has an id and is counted."""

    def build_middleware_stack(self) -> ASGIApp:
        house: ServerContext = self.state.house
        return RequestIdMiddleware(
            super().build_middleware_stack(), house.watchers, house.world.mono, house.world.new_id
        )

    def openapi(self) -> dict[str, Any]:
        if self.openapi_schema is None:
            for route in self.routes:
                if isinstance(route, Route):
                    route.describe()
            self.openapi_schema = described(super().openapi(), self.routes, self.state.house.api_notes)
        return self.openapi_schema


def create_app(house: ServerContext) -> FastAPI:
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
    app.router.routes.extend(all_routes(house.app_routers))
    page.install(app)
    if house.expect_responses is not None:
        of_page = [(page.NAME, method, status) for method in page.METHODS for status in FAILURES]
        house.expect_responses([*possible_failures(app.routes), *of_page])
    if house.settings.allowed_origins:
        app.add_middleware(
            CORSMiddleware,
            allow_origins=list(house.settings.allowed_origins),
            allow_methods=["*"],
            allow_headers=["*"],
            expose_headers=["*"],
        )
    app.add_middleware(RequestLimits, most_body=house.settings.max_body_bytes)
    return app
