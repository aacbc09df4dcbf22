"""What the handlers of the transcode flow need to know of the settings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from telecine.media.inputs import InputPolicy
from telecine.media.ladders.ladder_spec import check_ladders
from telecine.media.limits import SourceBounds
from telecine.media.orders import ChildLimits
from telecine.media.source import Picture

MIB = 1 << 20
# Measured: 0.8 GB of address space for four rungs from 1080p; a 2160p source needs three times that.
MIN_MEMORY = 1536 * MIB
PER_PIXEL = 700


@dataclass(frozen=True, slots=True, kw_only=True)
class TranscodeOptions:
    """Defaults for what a spec leaves open, and bounds that it cannot move."""

    ladder: str = "web-compact"
    ladders: Mapping[str, Any] = field(default_factory=dict)
    segment_seconds: float = 6.0
    gop_seconds: float = 2.0
    damaged: str = "fail"
    threads: int = 1  # per decoder and encoder: cores / slots of this worker
    bounds: SourceBounds = field(default_factory=SourceBounds)
    gate: InputPolicy = field(default_factory=InputPolicy)
    hardware_patience: float = 60.0  # seconds that a task waits for a worker with the encoder it was planned for
    shared: bool = False  # workers share no disk: a local file is stored as an artifact
    keep_completed_rungs: bool = True  # a person's retry adopts what the generation before it recorded
    memory: int | None = None  # bytes of address space for one media child; None: by the size of the picture

    def __post_init__(self) -> None:
        """`BadSpec` now, not when a film comes, if a ladder makes no sense."""
        check_ladders(self.ladder, self.ladders)

    def limits(self, picture: Picture | None = None) -> ChildLimits:
        """What a child that works on such a picture may use."""
        pixels = 0 if picture is None else picture.width * picture.height
        memory = self.memory or MIN_MEMORY + PER_PIXEL * pixels
        return ChildLimits(memory=memory, threads=self.threads)
