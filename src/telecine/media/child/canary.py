"""Try what a child must not do, and tell how it ended. For tests and for `telecine doctor` only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from telecine.media.child.talk import Talk
from telecine.media.orders import Limits


@dataclass(frozen=True, slots=True, kw_only=True)
class Canary:
    """What to try. Ports are those of listeners on the loopback."""

    op: ClassVar[str] = "canary"
    tcp: int | None = None
    udp: int | None = None
    limits: Limits = field(default_factory=Limits)


def run(order: Canary, talk: Talk) -> Mapping[str, Any]:
    raise NotImplementedError
