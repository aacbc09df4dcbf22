"""Which encoders this machine really has: found by encoding something, not by asking a driver."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from pathlib import Path
from tempfile import TemporaryDirectory

from telecine.errors import ChildFailed
from telecine.flow import CHILD
from telecine.media.families import FAMILIES, Family, trial
from telecine.media.plain import to_plain
from telecine.worker.mediachild import Ways, media_child
from telecine.world import World

log = logging.getLogger(__name__)

# Without one of these there is no card, and nothing is tried.
DEVICES = ("dri/renderD*", "nvidia[0-9]*", "kfd")


def possible(devices: Path = Path("/dev")) -> list[Family]:
    """The families in hardware that may be here, if there is hardware at all."""
    if not any(found for pattern in DEVICES for found in devices.glob(pattern)):
        return []
    return [family for family in FAMILIES.values() if family.hardware]


async def labels_of(families: Iterable[Family], world: World) -> tuple[str, ...]:
    """The labels of those that encode; one that fails is left out, and the log says why."""
    found: list[str] = []
    for family in families:
        order = trial(family.name)
        with TemporaryDirectory(prefix="telecine-trial-") as folder:
            ways = Ways(program=CHILD, folder=Path(folder), mono=world.mono, say=lambda *line: None)
            try:
                async with media_child(ways, {"op": order.op, **to_plain(order)}, {}, None, set()) as child:
                    async for _ in child:
                        pass
            except ChildFailed as error:
                log.info("no %s encoder here: %s", family.name, error)
                continue
        if family.label is not None:
            found.append(family.label)
    return tuple(found)
