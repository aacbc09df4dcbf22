"""Routes that cost little until somebody asks for them: a server has over a hundred, and starts many times.

A route knows its address and its methods at once. The first request for it makes the rest: what its function takes, and
how to check it. How its answers look is worked out for whoever reads the schema: our routes give finished answers, so
nothing else needs to know.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Coroutine, Iterable, Iterator
from functools import cache
from typing import Any

from fastapi import APIRouter
from fastapi.datastructures import DefaultPlaceholder
from fastapi.routing import APIRoute
from fastapi.utils import create_model_field, generate_unique_id
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Match
from starlette.routing import Route as PlainRoute
from starlette.types import Message, Receive, Scope, Send

from telecine.api.http.auth import needs_of

Responses = dict[int | str, dict[str, Any]]
# Any route can meet a bug and an outage of the database.
FAILURES = frozenset({500, 503})


class Route(APIRoute):
    """A route of ours. Whatever it lacks is there as soon as anybody looks at it."""

    def __init__(
        self,
        path: str,
        endpoint: Callable[..., Any],
        *,
        methods: Collection[str] | None = None,
        response_model: Any = None,
        responses: Responses | None = None,
        **more: Any,
    ) -> None:
        PlainRoute.__init__(self, path, endpoint, include_in_schema=more.get("include_in_schema", True))
        self.methods = {*(methods or ("GET",))}
        self.app = self._at_first
        # Not said: the annotation says it, and all of ours are of a finished answer.
        self._model = None if isinstance(response_model, DefaultPlaceholder) else response_model
        self._models = {status: said["model"] for status, said in (responses or {}).items() if "model" in said}
        plain = {status: _without_model(said) for status, said in (responses or {}).items()}
        self.declared = frozenset(status for status in plain if isinstance(status, int))
        self._missing: dict[str, Any] | None = {"methods": self.methods, "responses": plain, **more}

    async def _at_first(self, scope: Scope, receive: Receive, send: Send) -> None:
        self._complete()
        await self.app(scope, receive, send)

    def _complete(self) -> None:
        missing, self._missing = self._missing, None
        if missing is None:
            return
        try:
            super().__init__(self.path, self.endpoint, response_model=None, **missing)
        except BaseException:
            self._missing = missing  # whoever asks next shall hear the same
            raise

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """FastAPI reads and parses a body before it asks whose request it is: here it is the other way round."""
        handle, needs = super().get_route_handler(), needs_of(self.dependant)
        if needs is None or self.body_field is None:
            return handle

        async def admitted(request: Request) -> Response:
            await needs(request)
            return await handle(request)

        return admitted

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        match, child = super().matches(scope)
        return (Match.FULL if match is Match.PARTIAL and self._is_head(scope) else match), child

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        if self._is_head(scope):
            await self.app(scope, receive, _without_body(send))
        else:
            await super().handle(scope, receive, send)

    def _is_head(self, scope: Scope) -> bool:
        """HEAD is answered wherever GET is, by the same function; the schema need not say so."""
        return scope["type"] == "http" and scope["method"] == "HEAD" and self.methods == {"GET"}

    def __getattr__(self, name: str) -> Any:
        if self.__dict__.get("_missing") is None:
            raise AttributeError(f"a route has no {name!r}")
        self._complete()
        return getattr(self, name)

    def describe(self) -> None:
        """Say how the answers look, for the schema."""
        self._complete()
        if self._model is not None and self.response_field is None:
            name = f"Response_{generate_unique_id(self)}"
            self.response_field = create_model_field(name=name, type_=self._model, mode="serialization")
        self.response_fields = {status: _field(model) for status, model in self._models.items()}


class Router(APIRouter):
    """A router of such routes."""

    def __init__(self, *, route_class: type[APIRoute] = Route, **more: Any) -> None:
        super().__init__(route_class=route_class, generate_unique_id_function=_read_well, **more)


@cache
def _field(model: type) -> Any:
    """One for all routes with this model: every error is the same."""
    return create_model_field(name=model.__name__, type_=model, mode="serialization")


def _without_model(said: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in said.items() if name != "model"}


def _read_well(route: APIRoute) -> str:
    """What clients that are made from the schema call it: `get_job`, `worker_claim`."""
    return route.name if "_" in route.name or not route.tags else f"{route.tags[0]}_{route.name}"


def _without_body(send: Send) -> Send:
    is_over = False

    async def sent(message: Message) -> None:
        nonlocal is_over
        if message["type"] != "http.response.body":
            await send(message)
        elif not is_over:
            is_over = True
            await send({"type": "http.response.body", "body": b"", "more_body": False})

    return sent


def flat(routers: Iterable[APIRouter]) -> Iterator[BaseRoute]:
    """All routes in one list: FastAPI would look through each router, and what it includes, twice at every request.

    So a prefix belongs to the router whose routes need it, and no router includes another. Routes for HEAD alone come
    first, because a route for GET would answer it, too.
    """
    every = [route for router in routers for route in router.routes]
    for route in sorted(every, key=lambda route: getattr(route, "methods", None) != {"HEAD"}):
        if not hasattr(route, "path"):
            raise ValueError(f"{route!r} is no route: name routers one by one, none includes another")
        yield route


def possible_failures(routes: Iterable[BaseRoute]) -> Iterator[tuple[str, str, int]]:
    """Path template, method and status of every 5xx response that these routes can give."""
    for route in routes:
        path = getattr(route, "path", None)
        if path is None:
            continue
        methods = set(getattr(route, "methods", None) or {"GET"})  # a WebSocket begins with GET
        methods |= {"HEAD"} if isinstance(route, Route) and methods == {"GET"} else set()
        declared = {status for status in getattr(route, "declared", ()) if status >= min(FAILURES)}
        for method in sorted(methods):
            for status in sorted(FAILURES | declared):
                yield path, method, status
