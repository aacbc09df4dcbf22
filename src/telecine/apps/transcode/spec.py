"""What may be asked of the transcode flow. Whatever the submitter leaves open, the worker's settings decide."""

from __future__ import annotations

import hashlib
import json
import re
from difflib import get_close_matches
from fractions import Fraction
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from telecine.errors import BadSpec
from telecine.facts import Json
from telecine.media.ladders.ladder_spec import PRESETS

UPLOAD = "upload://"
_UPLOADED = re.compile(f"{UPLOAD}[0-9a-f]{{32}}")


class TranscodeSpec(BaseModel):
    """One job's wishes. `None` means: as the settings say."""

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)

    source: str = Field(min_length=1, description="A path, http(s)://, s3:// or upload://")
    sha256: str | None = Field(None, pattern="^[0-9a-f]{64}$", description="What the bytes must hash to, if known")
    size: int | None = Field(None, ge=1, description="How many bytes it has, if known; an upload's always is")
    name: str | None = Field(None, min_length=1, max_length=255, description="What people call it, else as its source")
    ladder: str | list[dict[str, Any]] | None = Field(None, description="A ladder's name, or its rungs")
    qualities: list[str] | None = Field(None, description="Encode only these rungs; others are carried over")
    preset: str | None = Field(None, description="x264's preset")
    encoder: str = Field("auto", description="Encoder family; `auto` takes hardware where it is there")
    segment_seconds: float | None = Field(None, gt=0, le=60)
    gop_seconds: float | None = Field(None, gt=0, le=20)
    chunk_segments: int | None = Field(None, ge=1, le=100, description="Segments per task; else by the free slots")
    audio: Literal["all", "first", "none"] = "all"
    poster: bool = True
    sprites: bool = True
    damaged: Literal["fail", "warn"] | None = Field(None, description="What a damaged source leads to")
    verify: Literal["sample", "full"] = "sample"
    lossless: bool = Field(False, description="For proofs: every rung without loss")

    @field_validator("source")
    @classmethod
    def _found_from_anywhere(cls, value: str) -> str:
        if "://" not in value and not value.startswith("/"):
            raise ValueError(f"{value!r} is a relative path, and workers have other folders: give an absolute one")
        if value.startswith(UPLOAD) and not _UPLOADED.fullmatch(value):
            raise ValueError(f"{value!r} is no upload; one is {UPLOAD} and 32 hexadecimal digits")
        return value

    @field_validator("preset")
    @classmethod
    def _known_preset(cls, value: str | None) -> str | None:
        if value is not None and value not in PRESETS:
            raise ValueError(f"there is no preset {value!r}; use one of {', '.join(PRESETS)}")
        return value

    @field_validator("qualities")
    @classmethod
    def _some(cls, value: list[str] | None) -> list[str] | None:
        if value is not None and not value:
            raise ValueError("name at least one rung, or leave `qualities` out")
        return value


def upload_of(source: str) -> str | None:
    """The upload that a source is, if it is one."""
    return source.removeprefix(UPLOAD) if source.startswith(UPLOAD) else None


def parse(spec: Json) -> TranscodeSpec:
    """The spec as a value; `BadSpec` says in one sentence what is wrong with it."""
    if not isinstance(spec, dict):
        raise BadSpec('a transcode job needs a spec like {"source": "/films/film.mkv"}')
    try:
        return TranscodeSpec(**spec)
    except ValidationError as error:
        # An unknown field first: it tells why another one is missing.
        [first, *_] = sorted(error.errors(), key=lambda one: one["type"] != "extra_forbidden")
        if first["type"] == "extra_forbidden":
            raise BadSpec(_unknown(str(first["loc"][0]))) from None
        message = first["msg"].removeprefix("Value error, ")
        place = ".".join(str(part) for part in first["loc"]) or "spec"
        raise BadSpec(f"{place}: {message[:1].lower()}{message[1:]}") from None


def _unknown(name: str) -> str:
    near = get_close_matches(name, TranscodeSpec.model_fields, n=1)
    hint = f"did you mean {near[0]!r}?" if near else f"it has {', '.join(TranscodeSpec.model_fields)}"
    return f"a transcode spec has no {name!r}; {hint}"


def digest(spec: TranscodeSpec) -> str:
    """Equal for jobs that would make the same thing of the same bytes, wherever these lie."""
    wishes = spec.model_dump(exclude={"source", "sha256", "size", "name"})
    return hashlib.sha256(json.dumps(wishes, sort_keys=True).encode()).hexdigest()


def exact(seconds: float) -> Fraction:
    """A number of seconds as a person wrote it: 1.001 is 1001/1000, not the nearest binary fraction."""
    return Fraction(str(seconds))
