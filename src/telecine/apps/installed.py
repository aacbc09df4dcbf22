"""Which apps are installed: the built-in ones, and those of other distributions (entry-point group `telecine.apps`).

A faulty app is left out and reported in one sentence; the others go on.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable, Iterator
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, NamedTuple

from telecine.apps import App, AppFlow

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

GROUP = "telecine.apps"
# By name, so that no module of the platform imports an app.
BUILT_IN = ("telecine.apps.transcode.app:app",)
NAME = re.compile("[a-z][a-z0-9-]{0,39}")


class AppEntry(NamedTuple):
    """Where an app is (`module:attribute`), and the distribution that brings it."""

    place: str
    distribution: str = "telecine"


class Installed(NamedTuple):
    """The apps that can be used, each with its distribution; and one sentence for each that cannot."""

    apps: tuple[App, ...]
    distributions: tuple[str, ...]
    faults: tuple[str, ...]

    def app(self, name: str) -> App | None:
        return next((app for app in self.apps if app.name == name), None)

    def flow(self, name: str) -> AppFlow | None:
        return next((app.flows[name] for app in self.apps if name in app.flows), None)


@cache
def installed() -> Installed:
    """Looked up once per process."""
    return load([*(AppEntry(place) for place in BUILT_IN), *_entries()])


def load(entries: Iterable[AppEntry]) -> Installed:
    apps: list[App] = []
    distributions: list[str] = []
    faults: list[str] = []
    for entry in entries:
        try:
            app = _load(entry)
            _check_names(app, apps)
        except Exception as error:
            faults.append(sentence(f"{entry.place} of {entry.distribution}", error))
        else:
            apps.append(app)
            distributions.append(entry.distribution)
    return Installed(tuple(apps), tuple(distributions), tuple(faults))


def sentence(what: str, error: Exception) -> str:
    """A fault for people: what is left out, and why."""
    why = " ".join(str(error).split()) or "no reason given"
    return f"app {what} is left out: {why if isinstance(error, AppFault) else f'{type(error).__name__}: {why}'}"


class AppFault(Exception):
    """What is wrong with an app, in words for its author."""


def _load(entry: AppEntry) -> App:
    module, _, attribute = entry.place.partition(":")
    app = getattr(import_module(module), attribute or "app")
    if not isinstance(app, App):
        raise AppFault(f"it is {type(app).__name__}, not telecine.apps.App")
    if not NAME.fullmatch(app.name):
        raise AppFault(f"name {app.name!r} must match {NAME.pattern}")
    return app


def _check_names(app: App, others: Iterable[App]) -> None:
    for other in others:
        if other.name == app.name:
            raise AppFault(f"name {app.name!r} is taken by another app")
        if taken := next((flow for flow in app.flows if flow in other.flows), None):
            raise AppFault(f"flow {taken!r} is taken by app {other.name!r}")
        kinds = {kind.name for kind in other.subjects}
        if taken := next((kind.name for kind in app.subjects if kind.name in kinds), None):
            raise AppFault(f"subject kind {taken!r} is taken by app {other.name!r}")


def _entries() -> list[AppEntry]:
    if not any(_declares_apps(file) for file in _entry_point_files()):
        return []  # the usual case: importlib.metadata costs 30 ms, a tenth of `telecine --help`
    from importlib.metadata import entry_points  # noqa: PLC0415 - see above

    found = sorted(entry_points(group=GROUP), key=lambda one: one.name)
    return [AppEntry(one.value, _distribution(one)) for one in found]


def _distribution(one: EntryPoint) -> str:
    return one.dist.name if one.dist is not None else "an unknown distribution"


def _entry_point_files() -> Iterator[str]:
    for folder in dict.fromkeys(sys.path):
        try:
            names = os.listdir(folder or ".")
        except OSError:
            continue  # a zip file, or not there
        for name in names:
            if name.endswith((".dist-info", ".egg-info")):
                yield os.path.join(folder, name, "entry_points.txt")


def _declares_apps(file: str) -> bool:
    try:
        with open(file, encoding="utf-8") as text:
            return f"[{GROUP}]" in text.read()
    except (OSError, UnicodeDecodeError):
        return False
