"""What becomes of films, and which are taken."""

from __future__ import annotations

import json
from typing import Any, Literal

from pydantic import Field, field_validator, model_validator

from telecine.settings.addresses import is_place
from telecine.settings.core import CoreSettings, split


class MediaSettings(CoreSettings):
    media_nice: int = Field(0, ge=0, le=19, description="How far encoding yields to other processes; 19: most")
    version_days: float = Field(
        7.0, ge=0, description="How long the files of a version stay after another took its place"
    )
    ladder: str = Field("web-compact", description="The ladder of jobs that name none: `web-compact`, `web`, …")
    ladders: dict[str, Any] = Field({}, description="Ladders of your own: lists of rungs by name, JSON in a variable")
    segment_seconds: float = Field(6.0, gt=0, le=60, description="Length of a segment, rounded to whole frames")
    gop_seconds: float = Field(2.0, gt=0, le=20, description="From one keyframe to the next, rounded to whole frames")
    damaged: Literal["fail", "warn"] = Field("fail", description="What a damaged source leads to")
    max_source_bytes: int = Field(200 << 30, ge=1, description="Larger sources are refused")
    max_source_seconds: float = Field(12 * 3600.0, gt=0, description="Longer sources are refused")
    max_pixels: int = Field(8192 * 4608, ge=256, description="Sources with more pixels in a frame are refused")
    max_streams: int = Field(64, ge=1, description="Sources with more streams are refused")
    allow_private_sources: tuple[str, ...] = Field(
        (), description="Hosts, addresses or networks inside your own that sources may come from"
    )
    codec_threads: int | None = Field(
        None, ge=1, le=64, description="Threads of each decoder and encoder; none: the cores shared by the slots"
    )
    hardware_patience_seconds: float = Field(
        60.0, gt=0, description="How long a film waits while no live worker has the hardware encoder it was planned for"
    )
    keep_completed_rungs: bool = Field(
        True,
        description="A person's retry of a failed film goes on with the segments that it has; false: makes them anew",
    )
    cleanup_partial_on_failure: bool = Field(
        False, description="Free the segments of unfinished rungs of films that failed; a retry makes them anew"
    )

    @field_validator("allow_private_sources", mode="before")
    @classmethod
    def _split_sources(cls, value: object) -> object:
        return split(value)

    @field_validator("ladders", mode="before")
    @classmethod
    def _tables(cls, value: object) -> object:
        try:
            return json.loads(value) if isinstance(value, str) else value
        except ValueError:
            raise ValueError('ladders in a variable are JSON: {"tv": [{"height": 720, "kbps": 3000}]}') from None

    @field_validator("allow_private_sources")
    @classmethod
    def _places(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        if bad := next((place for place in value if not is_place(place)), None):
            raise ValueError(f"{bad!r} is neither a host name nor an address nor a network such as 10.0.0.0/8")
        return value

    @model_validator(mode="after")
    def _segments_hold_gops(self) -> MediaSettings:
        if self.gop_seconds > self.segment_seconds:
            raise ValueError(
                f"a segment of {self.segment_seconds:g} s is too short for keyframes every {self.gop_seconds:g} s: "
                "segment_seconds must be at least gop_seconds"
            )
        return self
