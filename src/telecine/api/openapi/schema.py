"""What FastAPI says about our routes, made whole: who may ask, what can go wrong, examples, names for people."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from http import HTTPStatus
from typing import Any

from fastapi.dependencies.models import Dependant
from fastapi.routing import APIRoute
from starlette.routing import BaseRoute

from telecine.api.http.auth import needs_of
from telecine.api.http.problems import KIND
from telecine.api.openapi.examples import EXAMPLES
from telecine.api.openapi.lint import complete
from telecine.api.openapi.notes import ApiNotes
from telecine.engine.accounts.keys import Scope

# What FastAPI calls things of one name in two modules, and its own errors, which nobody ever sees.
NAMES = {
    "telecine__api__http__problems__Problem": "Problem",
    "telecine__engine__queries__view_models__Problem": "TaskProblem",
}
UNSEEN = ("HTTPValidationError", "ValidationError")
ALWAYS = (422, 429, 503)
WITH_BODY = (400, 413)
WITH_KEY = (401, 403)
FIRST_ERROR = 400
SCHEME = {"type": "http", "scheme": "bearer", "description": "A key: `Authorization: Bearer tcn_…`"}


def scope_of(dependant: Dependant) -> Scope | None:
    """The scope that a route declares; None: it needs no key."""
    needs = needs_of(dependant)
    return None if needs is None else needs.scope


def described(schema: dict[str, Any], routes: Iterable[BaseRoute], of_apps: ApiNotes) -> dict[str, Any]:
    """The schema with all that FastAPI cannot know."""
    text = json.dumps(schema)
    for theirs, ours in NAMES.items():
        text = text.replace(theirs, ours)
    whole: dict[str, Any] = json.loads(text)
    parts = whole.setdefault("components", {})
    schemas = parts.setdefault("schemas", {})
    for operation, scope in _operations(whole, routes):
        _summarise(operation)
        _declare_problems(operation, scope)
        if scope is not None:
            operation["security"] = [{"key": []}]
            operation["x-scope"] = scope.value
    parts["securitySchemes"] = {"key": SCHEME}
    for name in UNSEEN:
        schemas.pop(name, None)
    for name, example in {**of_apps.examples, **EXAMPLES}.items():
        if name in schemas:
            schemas[name].setdefault("examples", [example])
    complete(whole, of_apps.tags, of_apps.optional_key)
    return whole


def _operations(schema: dict[str, Any], routes: Iterable[BaseRoute]) -> Iterator[tuple[dict[str, Any], Scope | None]]:
    for route in routes:
        if isinstance(route, APIRoute) and route.include_in_schema:
            for method in route.methods or ():
                yield schema["paths"][route.path_format][method.lower()], scope_of(route.dependant)


def _summarise(operation: dict[str, Any]) -> None:
    """The first sentence; the rest, if there is any, stays a description."""
    about = " ".join(operation.get("description", "").split())
    if not about:
        return
    first, _, rest = about.partition(". ")
    operation["summary"] = first.rstrip(".")
    operation["description"] = about if rest else first
    if not rest:
        del operation["description"]


def _declare_problems(operation: dict[str, Any], scope: Scope | None) -> None:
    """Each as a problem, and also those that any route can have."""
    found = operation["responses"]
    known = {int(status) for status in found if status.isdigit() and int(status) >= FIRST_ERROR}
    known |= {*ALWAYS, *(WITH_BODY if "requestBody" in operation else ()), *(WITH_KEY if scope is not None else ())}
    if any(param["in"] == "path" for param in operation.get("parameters", ())):
        known.add(HTTPStatus.NOT_FOUND)
    for status in sorted(known):
        said = found.pop(str(status), {}).get("description")
        plain = said if said not in (None, "Validation Error") else HTTPStatus(status).phrase
        content = {KIND: {"schema": {"$ref": "#/components/schemas/Problem"}}}
        found[str(status)] = {"description": plain, "content": content}
