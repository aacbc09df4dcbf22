"""Which encoders this machine really has: found by encoding something, not by asking a driver."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from telecine.errors import ChildFailed
from telecine.facts import Json
from telecine.flow import CHILD
from telecine.media.ladders.encoder_families import FAMILIES, EncoderFamily, trial
from telecine.media.orders import plain_order
from telecine.worker.media.media_child import ChildOptions, media_child
from telecine.world import World

log = logging.getLogger(__name__)

# Without one of these there is no card, and nothing is tried.
DEVICES = ("dri/renderD*", "nvidia[0-9]*", "kfd")


def possible(devices: Path = Path("/dev")) -> list[EncoderFamily]:
    """The families in hardware that may be here, if there is hardware at all."""
    if not any(found for pattern in DEVICES for found in devices.glob(pattern)):
        return []
    return [family for family in FAMILIES.values() if family.hardware]


async def labels_of(families: Iterable[EncoderFamily], world: World) -> tuple[str, ...]:
    """The labels of those that encode."""
    return tuple([one.label for one in families if one.label is not None and await encodes(one, world)])


async def encodes(family: EncoderFamily, world: World) -> bool:
    """Whether this family encodes here; if not, the log says why."""
    try:
        await said_to(trial(family.name), world)
    except ChildFailed as error:
        log.info("no %s encoder here: %s", family.name, error)
        return False
    return True


async def said_to(order: Any, world: World) -> list[dict[str, Json]]:
    """Everything that a child of no job says to one order; `ChildFailed` if it does not get done."""
    with TemporaryDirectory(prefix="telecine-trial-") as folder:
        ways = ChildOptions(program=CHILD, folder=Path(folder), mono=world.mono, say=lambda *line: None)
        async with media_child(ways, plain_order(order), {}, None, set()) as child:
            return [message async for message in child]
