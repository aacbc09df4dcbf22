"""Apps: which are installed."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from starlette.responses import Response

from telecine.api.http.auth import Owner
from telecine.api.http.context import Here
from telecine.api.http.json_response import answer
from telecine.api.http.problems import answers
from telecine.api.http.routing import Router

router = Router(prefix="/api/v1/apps", tags=["apps"])


@dataclass(frozen=True, slots=True)
class SubjectKindView:
    """A kind of thing that jobs of an app are about, and the statuses that one can have."""

    name: str
    statuses: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class AppView:
    """One app. `specs` has the JSON Schema of each flow's spec, by flow; a flow without one takes any spec."""

    name: str
    title: str
    version: str
    flows: tuple[str, ...] = ()
    subjects: tuple[SubjectKindView, ...] = ()
    specs: dict[str, dict[str, Any]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Apps:
    items: tuple[AppView, ...]


@router.get("", response_model=Apps, responses=answers(401, 403, 429))
async def list_apps(who: Owner, house: Here) -> Response:
    """List the installed apps: their flows, subject kinds and the JSON Schema of their specs."""
    return answer(Apps(house.apps()))
