"""Apps: vertical slices on top of the platform, each one value of the class `App`.

The platform knows this class and the list of what is installed (`telecine.apps.installed`), never a single app. An app
may use the whole platform. Every field but the names is a function, so that a process pays only for what it uses:
`telecine --help` reads the commands of an app, a worker its flows, a server its routes.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fastapi import APIRouter
    from pydantic import BaseModel

    from telecine.api.http.context import ArtifactInspector, SourceLender, SpecCheck
    from telecine.api.openapi.notes import ApiNotes
    from telecine.api.uploads.handler import UploadHandler
    from telecine.cli.commands.doctor_disk import DoctorCheck
    from telecine.facts import Json
    from telecine.flow import Flow
    from telecine.settings import Settings
    from telecine.wiring import Parts
    from telecine.world import World


def imported(place: str) -> Callable[..., Any]:
    """A function that returns what stands at `module:name`, whatever its arguments; imported when it is called."""

    def get(*ignored: Any) -> Any:
        module, _, name = place.partition(":")
        return getattr(import_module(module), name)

    return get


@dataclass(frozen=True, slots=True, kw_only=True)
class FlowContext:
    """What a flow is made from.

    `section` is the app's own settings, if it declares some. `shared`: workers share no disk, so whatever another
    worker must read is an artifact. `open_bucket` opens `s3://…` with the keys of the settings.
    """

    settings: Settings
    section: Any
    shared: bool
    open_bucket: Callable[[str], Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class AppFlow:
    """One flow of an app, and what the platform does with its jobs on the app's behalf."""

    make: Callable[[FlowContext], Flow]
    # The model of its specs: published as JSON Schema, and checked at submit.
    spec: Callable[[], type[BaseModel]] | None = None
    # Refuses (`BadSpec`) a spec that could only fail. Without it the model alone decides.
    check: Callable[[Json, Settings], None] | None = None
    # On a server: may this caller submit this spec? Asked after the model; with `check`, in its place.
    policy: Callable[[Parts], SpecCheck] | None = None
    # On a server: looks at what an untrusted worker uploads. Without it uploads are believed.
    inspector: Callable[[Parts], ArtifactInspector] | None = None
    # On a server: which file of its disk a remote worker may read. Without it: none.
    lender: Callable[[], SourceLender] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SubjectKind:
    """A kind of thing that jobs of the app are about. Its status is derived, never stored."""

    name: str
    statuses: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class App:
    """All that an app brings. `docs/apps.md` shows a whole one."""

    name: str
    title: str
    # Empty: the version of the distribution that it came with.
    version: str = ""
    flows: Mapping[str, AppFlow] = field(default_factory=dict)
    subjects: tuple[SubjectKind, ...] = ()
    # The model of `[apps.<name>]` in telecine.toml.
    settings: Callable[[], type[BaseModel]] | None = None
    # Command line: functions for Typer, or `typer.Typer` groups with a name, by the panel of `--help`.
    commands: Callable[[], Mapping[str, Sequence[Any]]] | None = None
    # Lines of `telecine doctor`.
    doctor: Callable[[Settings, World], AsyncIterator[DoctorCheck]] | None = None
    # Python client: what `Client.app(name)` returns.
    client: Callable[[Parts], Any] | None = None
    # Workers: labels that this machine has, found by trial.
    labels: Callable[[World], Awaitable[Sequence[str]]] | None = None
    # Server.
    routers: Callable[[], Sequence[APIRouter]] | None = None
    api_notes: Callable[[], ApiNotes] | None = None
    uploads: Callable[[Parts], UploadHandler] | None = None
    # Facts about subjects that only the server may record, for example where a source was seen last.
    own_facts: frozenset[str] = frozenset()
    # Runs beside the server from start to stop.
    background: Callable[[Parts], AbstractAsyncContextManager[object]] | None = None
    # One pass of housekeeping: frees some files that no job needs, and returns how many. None: there is nothing to do.
    cleanup: Callable[[Parts], Callable[[], Awaitable[int]] | None] | None = None


__all__ = ["App", "AppFlow", "FlowContext", "SubjectKind", "imported"]
