"""Installed apps -> parts of a worker, a server, a command.

What an app cannot make is left out and reported in one sentence; the other apps go on. Wrong settings are not a fault
of an app: they are refused, as everywhere.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from functools import cache, partial
from typing import TYPE_CHECKING, Any, TypeVar

from pydantic import ValidationError

from telecine.apps import App, AppFlow, FlowContext
from telecine.apps.installed import AppFault, installed
from telecine.errors import BadSpec, NotFound
from telecine.facts import Json
from telecine.flow import Flow
from telecine.settings import Settings

if TYPE_CHECKING:
    from fastapi import APIRouter
    from starlette.routing import BaseRoute

    from telecine.api.http.context import SpecCheck
    from telecine.api.openapi.notes import ApiNotes
    from telecine.api.routes.apps import AppView
    from telecine.engine.accounts.keys import Caller
    from telecine.wiring import Parts
    from telecine.world import World

log = logging.getLogger(__name__)

T = TypeVar("T")


@dataclass(slots=True)
class Gathered:
    """What apps made, and one sentence for each that could not. `report`: write those to the log at once."""

    report: bool = True
    faults: list[str] = field(default_factory=list)

    def each(self, what: str, make: Callable[[App], T], apps: Iterable[App] | None = None) -> list[tuple[App, T]]:
        """`what`, by app, of the apps that could make it."""
        found: list[tuple[App, T]] = []
        for app in installed().apps if apps is None else apps:
            try:
                found.append((app, make(app)))
            except BadSpec:
                raise
            except Exception as error:
                why = str(error) if isinstance(error, AppFault) else f"{type(error).__name__}: {error}"
                self.fault(f"{what} of app {app.name} are left out: {' '.join(why.split())}")
        return found

    def fault(self, sentence: str) -> None:
        self.faults.append(sentence)
        if self.report:
            log.warning("%s", sentence)


# -- workers ------------------------------------------------------------------------------------------


def flows_of(context: Callable[[Any], FlowContext], settings: Settings, gathered: Gathered | None = None) -> list[Flow]:
    """All flows of all apps. `context` makes what a flow is made from, given the app's own settings."""

    def make(app: App) -> list[Flow]:
        about = context(section_of(app, settings))
        return [_made(name, flow, about) for name, flow in app.flows.items()]

    if gathered is None:
        gathered = Gathered()
        for sentence in installed().faults:
            gathered.fault(sentence)
    return [flow for _, flows in gathered.each("flows", make) for flow in flows]


def _made(name: str, flow: AppFlow, context: FlowContext) -> Flow:
    made = flow.make(context)
    if made.name != name:
        raise AppFault(f"the flow that is listed as {name!r} is called {made.name!r}")
    _ = made.graph  # raises if it cannot work
    return made


def section_of(app: App, settings: Settings) -> Any:
    """The app's own settings as a value of its model; None if it declares none."""
    if app.settings is None:
        return None
    try:
        return app.settings().model_validate(settings.apps.get(app.name, {}))
    except ValidationError as error:
        [first, *_] = error.errors()
        place = ".".join(str(part) for part in ("apps", app.name, *first["loc"]))
        raise BadSpec(f"{place}: {first['msg'][:1].lower()}{first['msg'][1:]}") from None


async def machine_labels(world: World) -> tuple[str, ...]:
    """Labels that apps found this machine to have."""
    probes = [app.labels(world) for app in installed().apps if app.labels is not None]
    return tuple(dict.fromkeys([label for probe in probes for label in await probe]))


def cleanup_of(parts: Parts) -> Callable[[], Awaitable[int]] | None:
    """One pass of what apps free; None if none of them frees anything."""
    found = Gathered().each("clean-up", lambda app: app.cleanup and app.cleanup(parts))
    passes = [clean for _, clean in found if clean is not None]

    async def clean() -> int:
        return sum([await one() for one in passes])

    return clean if passes else None


# -- specs --------------------------------------------------------------------------------------------


def check_spec(flow: str, spec: Json, settings: Settings) -> None:
    """Refuse a spec that could only fail; flows of no app take any."""
    known = installed().flow(flow)
    if known is not None:
        _check(known, spec, settings)


def _check(flow: AppFlow, spec: Json, settings: Settings) -> None:
    if flow.check is not None:
        flow.check(spec, settings)
    elif flow.spec is not None:
        try:
            flow.spec().model_validate(spec)
        except ValidationError as error:
            [first, *_] = error.errors()
            place = ".".join(str(part) for part in first["loc"]) or "spec"
            raise BadSpec(f"{place}: {first['msg'][:1].lower()}{first['msg'][1:]}") from None


# -- a server -----------------------------------------------------------------------------------------


def for_house(parts: Parts) -> dict[str, Any]:
    """What apps give to the house of a server, by its fields."""
    gathered = Gathered()
    routers, notes = api_of(gathered)
    found: dict[str, Any] = {"checks": {}, "inspectors": {}, "lenders": {}}
    for _, some in gathered.each("rules", partial(_rules, parts)):
        for name, by_flow in some.items():
            found[name] |= by_flow
    own_facts = [app.own_facts for app in installed().apps]
    more = {"app_routers": routers, "api_notes": notes, "own_facts": frozenset().union(*own_facts)}
    return {"apps": cache(views), **found, **more}


def _rules(parts: Parts, app: App) -> dict[str, dict[str, Any]]:
    """By field of the house and by flow: what the server does with jobs on the app's behalf."""
    policies = {name: _policy(flow, parts) for name, flow in app.flows.items()}
    return {
        "checks": {name: policy for name, policy in policies.items() if policy is not None},
        "inspectors": {name: flow.inspector(parts) for name, flow in app.flows.items() if flow.inspector is not None},
        "lenders": {name: flow.lender() for name, flow in app.flows.items() if flow.lender is not None},
    }


def _policy(flow: AppFlow, parts: Parts) -> SpecCheck | None:
    policy = flow.policy(parts) if flow.policy is not None else None
    if policy is not None and (flow.check is not None or flow.spec is None):
        return policy
    if flow.check is None and flow.spec is None:
        return None

    async def check(spec: Json, caller: Caller) -> None:
        _check(flow, spec, parts.settings)
        if policy is not None:
            await policy(spec, caller)

    return check


def upload_handler_of(parts: Parts) -> Any:
    """The app that takes uploads; None if there is none. The first one in the list does."""
    taking = [app for app in installed().apps if app.uploads is not None]
    for other in taking[1:]:
        log.warning("uploads go to app %s, not to app %s: one app takes them", taking[0].name, other.name)
    found = Gathered().each("uploads", lambda app: app.uploads and app.uploads(parts), taking[:1])
    return found[0][1] if found else None


@asynccontextmanager
async def background(parts: Parts) -> AsyncIterator[None]:
    """What apps do beside the server, while the body runs."""
    async with AsyncExitStack() as running:
        for app in installed().apps:
            if app.background is not None:
                await running.enter_async_context(app.background(parts))
        yield


def api_of(gathered: Gathered | None = None) -> tuple[tuple[APIRouter, ...], ApiNotes]:
    """Routers of all apps whose routes meet no other route, and what the description of the API says about them."""
    from telecine.api.app import platform_routes  # noqa: PLC0415 - only where routes are wanted
    from telecine.api.http.routing import flat  # noqa: PLC0415
    from telecine.api.openapi.notes import ApiNotes  # noqa: PLC0415

    gathered = gathered or Gathered()
    taken: list[BaseRoute] = list(platform_routes())
    routers: list[APIRouter] = []
    notes = ApiNotes()

    def make(app: App) -> tuple[Sequence[APIRouter], ApiNotes | None]:
        some = app.routers() if app.routers is not None else ()
        check_routes(flat(some), taken)
        return some, app.api_notes() if app.api_notes is not None else None

    for app in installed().apps:
        for _, (some, more) in gathered.each("routes", make, [app]):
            routers += some
            taken += flat(some)
            notes = notes if more is None else notes.joined(more)
    return tuple(routers), notes


def check_routes(new: Iterable[BaseRoute], taken: Iterable[BaseRoute]) -> None:
    """`AppFault` if a request could fit a new route and one that is there."""
    taken = list(taken)
    for route in new:
        for other in taken:
            if _methods(route) & _methods(other) and (_fits(route, other) or _fits(other, route)):
                raise AppFault(f"{_path(route)} collides with {_path(other)}")


def _path(route: BaseRoute) -> str:
    return str(getattr(route, "path", ""))


def _methods(route: BaseRoute) -> set[str]:
    return set(getattr(route, "methods", None) or ("GET",))


def _fits(pattern: BaseRoute, route: BaseRoute) -> bool:
    regex = getattr(pattern, "path_regex", None)
    return regex is not None and regex.match(getattr(route, "path_format", _path(route))) is not None


def views() -> tuple[AppView, ...]:
    """The apps as `GET /api/v1/apps` shows them."""
    from telecine.api.routes.apps import AppView, SubjectKindView  # noqa: PLC0415 - only where they are shown

    return tuple(
        AppView(
            name=app.name,
            title=app.title,
            version=version_of(app),
            flows=tuple(app.flows),
            subjects=tuple(SubjectKindView(kind.name, kind.statuses) for kind in app.subjects),
            specs={name: flow.spec().model_json_schema() for name, flow in app.flows.items() if flow.spec is not None},
        )
        for app in installed().apps
    )


def version_of(app: App) -> str:
    from importlib.metadata import PackageNotFoundError, version  # noqa: PLC0415 - not for every command

    known = installed()
    try:
        return app.version or version(known.distributions[known.apps.index(app)])
    except PackageNotFoundError:
        return ""


# -- a program ----------------------------------------------------------------------------------------


def client_of(parts: Parts, name: str) -> Any:
    """What an app offers to Python programs; `NotFound` if it is not installed or offers nothing."""
    app = installed().app(name)
    if app is None or app.client is None:
        raise NotFound(f"there is no app {name!r} with a client here: `telecine doctor` lists the apps")
    return app.client(parts)
