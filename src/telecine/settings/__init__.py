"""One frozen `Settings`, read once at the edge.

Each value comes from the first that names it: the command line, a `TELECINE_*` variable, a TOML file
(`telecine.toml` in the current folder, or the one that `TELECINE_CONFIG` names), the default. A name that does not
exist is refused with the nearest one that does, so that no typo goes unnoticed. Functions receive the value
that they need, not this object.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from telecine.errors import BadSpec, UnknownSetting
from telecine.settings.addresses import redacted
from telecine.settings.core import BEATS_PER_LEASE, cores
from telecine.settings.server import ServerSettings

__all__ = ["BEATS_PER_LEASE", "PREFIX", "SECRETS", "Loaded", "Settings", "cores", "load", "redacted"]

PREFIX = "TELECINE_"
FILE = "telecine.toml"
# Names with our prefix that are no settings: where the file is, and what only the tests read.
NOT_SETTINGS = ("TELECINE_CONFIG", "TELECINE_TEST_")
# What a value must be, by pydantic's name of the fault. Only of these is the value told: all else may be a secret.
MUST = {
    **dict.fromkeys(("int_parsing", "int_type", "int_from_float"), "a whole number"),
    **dict.fromkeys(("float_parsing", "float_type"), "a number"),
    **dict.fromkeys(("bool_parsing", "bool_type"), "true or false"),
    "literal_error": "{expected}",
    "greater_than": "more than {gt:g}",
    "greater_than_equal": "at least {ge:g}",
    "less_than": "less than {lt:g}",
    "less_than_equal": "at most {le:g}",
}
SECRETS = ("s3_access_key_id", "s3_secret_access_key", "metrics_token")


class Settings(ServerSettings):
    """Everything that can be set. Making one reads no environment: see `load`."""

    def shown(self, name: str) -> Any:
        """The value of a setting as it may be printed."""
        value = getattr(self, name)
        if name in SECRETS:
            return None if value is None else "***"
        if name == "apps":  # only an app knows which of its values are secret
            return dict.fromkeys(value, "***")
        if isinstance(value, Path):
            return str(value)
        return redacted(value) if isinstance(value, str) else value


@dataclass(frozen=True, slots=True)
class Loaded:
    """The settings, and for each the place that it came from."""

    settings: Settings
    sources: Mapping[str, str]


def load(
    environ: Mapping[str, str] | None = None,
    *,
    folder: Path | None = None,
    given: Mapping[str, Any] | None = None,
) -> Loaded:
    """Read the settings; `given` (what the command line says) wins over all else, unless it is None."""
    environ = os.environ if environ is None else environ
    layers = [
        _from_file(environ, folder or Path()),
        _from_environment(environ),
        {name: (value, "command line") for name, value in (given or {}).items() if value is not None},
    ]
    found: dict[str, tuple[Any, str]] = {}
    for layer in layers:
        found |= layer
    places = {name: place for name, (_, place) in found.items()}
    try:
        settings = Settings(**{name: value for name, (value, _) in found.items()})
    except ValidationError as error:
        raise BadSpec(_sentence(error, places)) from None
    return Loaded(settings, {name: places.get(name, "default") for name in Settings.model_fields})


def _from_environment(environ: Mapping[str, str]) -> dict[str, tuple[Any, str]]:
    known = {f"{PREFIX}{name.upper()}": name for name in Settings.model_fields}
    ours = [name for name in environ if name.startswith(PREFIX) and not name.startswith(NOT_SETTINGS)]
    _refuse_unknown(ours, known)
    # Compose files and service units pass an unset variable on as an empty one.
    return {known[name]: (environ[name], name) for name in ours if environ[name] != ""}


def _from_file(environ: Mapping[str, str], folder: Path) -> dict[str, tuple[Any, str]]:
    named = environ.get(f"{PREFIX}CONFIG")
    path = folder / (named or FILE)
    if not path.exists():
        if named:
            raise BadSpec(f"TELECINE_CONFIG names {named}, which does not exist")
        return {}
    try:
        content = tomllib.loads(path.read_text())
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise BadSpec(f"{path} cannot be read: {error}") from None
    _refuse_unknown(content, Settings.model_fields, f" in {path}")
    return {name: (value, str(path)) for name, value in content.items()}


def _refuse_unknown(names: Iterable[str], known: Iterable[str], where: str = "") -> None:
    known = list(known)
    for name in names:
        if name not in known:
            near = get_close_matches(name, known, n=1)
            hint = f"did you mean {near[0]}?" if near else "`telecine config` lists them all"
            raise UnknownSetting(f"unknown setting {name}{where}; {hint}")


def _sentence(error: ValidationError, places: Mapping[str, str]) -> str:
    """The first thing that is wrong, in one sentence."""
    [first, *_] = error.errors()
    message = first["msg"].removeprefix("Value error, ")
    if not first["loc"]:
        return message
    name = str(first["loc"][0])
    place = places.get(name, "default")
    label = place if place.startswith(PREFIX) else f"{name} ({place})"
    if (must := MUST.get(first["type"])) is not None:
        return f"{label}: {name} must be {must.format(**first.get('ctx', {}))}, not {first['input']!r}"
    return f"{label}: {message[:1].lower()}{message[1:]}"
