"""What the doctor says about apps: a line for each, for each fault, and what the apps find themselves."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import suppress
from typing import TYPE_CHECKING

from telecine.apps.installed import installed
from telecine.cli.commands.doctor_disk import DoctorCheck
from telecine.errors import TelecineError
from telecine.plural import counted

if TYPE_CHECKING:
    from telecine.apps import App
    from telecine.settings import Settings
    from telecine.world import World


async def examine_apps(settings: Settings, world: World) -> AsyncIterator[DoctorCheck]:
    """Everything that an app makes is made once, so that a fault is found here and not in production."""
    known = installed()
    for app in known.apps:
        yield DoctorCheck("app", "ok", _about(app))
    for sentence in (*known.faults, *_faults(settings)):
        yield DoctorCheck("app", "wrong", sentence)
    for app in known.apps:
        if app.doctor is None:
            continue
        try:
            async for check in app.doctor(settings, world):
                yield check
        except Exception as error:
            yield DoctorCheck("app", "wrong", f"the checks of app {app.name} failed: {type(error).__name__}: {error}")


def _about(app: App) -> str:
    from telecine.wiring.apps import version_of

    flows = f"{counted(len(app.flows), 'flow')}: {', '.join(app.flows)}" if app.flows else "no flow"
    return f"{app.name} {version_of(app)} ({flows})"


def _faults(settings: Settings) -> list[str]:
    from telecine.cli.app import command_faults
    from telecine.wiring import installed_flows
    from telecine.wiring.apps import Gathered, api_of

    gathered = Gathered(report=False)
    with suppress(TelecineError):  # wrong settings: the checks of the app whose settings they are say so
        installed_flows(settings, shared=False, gathered=gathered)  # so that no folder of artifacts is made
    api_of(gathered)
    return [*gathered.faults, *command_faults]
