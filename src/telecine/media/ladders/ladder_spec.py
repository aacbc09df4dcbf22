"""Ladders that people write: a name, or rungs as a list of tables, in a job's spec or in the settings."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import fields
from difflib import get_close_matches
from typing import Any

from telecine.errors import BadSpec
from telecine.media.ladders.ladder import LADDERS, Ladder, LadderStep

MAX_RUNGS = 16
TALLEST = 4320
MAX_KBPS = 400_000
PRESETS = ("ultrafast", "superfast", "veryfast", "faster", "fast", "medium", "slow", "slower", "veryslow")
KNOWN = tuple(field.name for field in fields(LadderStep))
_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,31}")


def read_ladder(value: object, own: Mapping[str, Any] | None = None) -> Ladder:
    """The ladder that `value` names or spells out; `own` are those of the settings. `BadSpec` says what is wrong."""
    if isinstance(value, str):
        return _called(value, own or {})
    rungs = value.get("rungs") if isinstance(value, Mapping) else value
    if not isinstance(rungs, Sequence) or not rungs or isinstance(rungs, str):
        raise BadSpec('a ladder is a name or a list of rungs such as [{"height": 720, "kbps": 3000}]')
    if len(rungs) > MAX_RUNGS:
        raise BadSpec(f"a ladder has at most {MAX_RUNGS} rungs; this one has {len(rungs)}")
    steps: list[LadderStep] = []
    for place, rung in enumerate(rungs):
        steps.append(_step(rung, f"rung {place + 1} of the ladder", {step.name for step in steps}))
    return tuple(steps)


def check_ladders(usual: str, own: Mapping[str, Any]) -> None:
    """`BadSpec` if a ladder of the settings makes no sense, or the one that jobs get by default is not there."""
    for name in (usual, *own):
        read_ladder(name, own)


def _called(name: str, own: Mapping[str, Any]) -> Ladder:
    if name in own:
        try:
            return read_ladder(own[name] if not isinstance(own[name], str) else [])
        except BadSpec as error:
            raise BadSpec(f"ladder {name!r} of the settings: {error}") from None
    if name not in LADDERS:
        known = [*LADDERS, *own]
        near = get_close_matches(name, known, n=1)
        raise BadSpec(
            f"there is no ladder {name!r}; " + (f"did you mean {near[0]!r}?" if near else f"use {_or(known)}")
        )
    return LADDERS[name]


def _step(rung: object, where: str, taken: set[str]) -> LadderStep:
    if not isinstance(rung, Mapping):
        raise BadSpec(f'{where} must be a table such as {{"height": 720, "kbps": 3000}}')
    for key in rung:
        if key not in KNOWN:
            near = get_close_matches(str(key), KNOWN, n=1)
            hint = f"did you mean {near[0]!r}?" if near else f"a rung has {_or(KNOWN)}"
            raise BadSpec(f"{where} has an unknown key {key!r}; {hint}")
    height = None if rung.get("height") == "source" else _number(rung, "height", where, 2, TALLEST)
    if height and height % 2:
        raise BadSpec(f"{where}: height {height} must be even; H.264 halves the colour")
    if height is None and "height" not in rung:
        raise BadSpec(f'{where} has no height; give the short side in pixels, or "source"')
    kbps = _number(rung, "kbps", where, 1, MAX_KBPS)
    if height is not None and kbps is None:
        raise BadSpec(f"{where} has no kbps; give its usual bit rate in thousands per second")
    return LadderStep(
        name=_name(rung, height, kbps, where=where, taken=taken),
        height=height,
        kbps=kbps,
        required=_flag(rung, "required", where, True),
        crf=_number(rung, "crf", where, 0, 51),
        preset=_preset(rung.get("preset", LadderStep().preset), where),
        lossless=_flag(rung, "lossless", where, False),
    )


def _name(rung: Mapping[str, Any], height: int | None, kbps: int | None, *, where: str, taken: set[str]) -> str:
    """The given name, or the usual one; a second rung of the same height carries its bit rate."""
    usual = "" if height is None else f"{height}p" if f"{height}p" not in taken else f"{height}p-{kbps}"
    name = rung.get("name", usual)
    if name != "" and (not isinstance(name, str) or not _NAME.fullmatch(name)):
        raise BadSpec(f"{where}: the name {name!r} may have small letters, digits, - and _, at most 32 in all")
    if name in taken:
        raise BadSpec(f"{where}: the name {name or 'of the source rung'!r} is taken by another rung; give it another")
    return str(name)


def _number(rung: Mapping[str, Any], key: str, where: str, least: int, most: int) -> int | None:
    value = rung.get(key)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        raise BadSpec(f"{where}: {key} must be a whole number from {least} to {most}, not {value!r}")
    return value


def _flag(rung: Mapping[str, Any], key: str, where: str, usual: bool) -> bool:
    value = rung.get(key, usual)
    if not isinstance(value, bool):
        raise BadSpec(f"{where}: {key} must be true or false, not {value!r}")
    return value


def _preset(value: object, where: str) -> str:
    if value not in PRESETS:
        raise BadSpec(f"{where}: preset must be {_or(PRESETS)}, not {value!r}")
    return str(value)


def _or(names: Sequence[str]) -> str:
    return f"{', '.join(names[:-1])} or {names[-1]}"
