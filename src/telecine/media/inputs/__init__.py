"""Where a source's bytes come from: a file in place, http(s):// or s3://. Our own clients fetch them, never FFmpeg.

    source ──open_input──▶ LocalFile                      read in place; must stay as it is
                       └─▶ WebFile | BucketFile ──save──▶ a whole file, hashed; resumed where it broke off

`InputPolicy` says which places may be asked: an address inside the operator's own network is refused unless allowed.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from telecine.errors import MediaRefused, SourceUnreachable
from telecine.media.inputs.address_policy import InputPolicy
from telecine.media.inputs.bucket import BucketFile
from telecine.media.inputs.download import Fetched, Progress, TransferBroken, save, silent
from telecine.media.inputs.files import LocalFile, hash_file
from telecine.media.limits import SourceBounds, check_size

if TYPE_CHECKING:
    from telecine.media.inputs.web import WebFile

__all__ = [
    "BucketFile",
    "Fetched",
    "InputPolicy",
    "LocalFile",
    "Progress",
    "download",
    "hash_file",
    "is_remote",
    "open_input",
    "reach",
]

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://")


def is_remote(source: str) -> bool:
    """Whether the source is an address rather than a path."""
    return _SCHEME.match(source) is not None


def open_input(source: str, gate: InputPolicy) -> LocalFile | WebFile | BucketFile:
    """The place of the source. Nothing remote is asked yet; a local file must be there."""
    found = _SCHEME.match(source)
    match found and found[1].lower():
        case None:
            return LocalFile.at(Path(source))
        case "http" | "https":
            from telecine.media.inputs.web import WebFile  # noqa: PLC0415 - its client takes a while to read

            return WebFile.at(source, gate)
        case "s3":
            return BucketFile.at(source, gate)
        case other:
            raise MediaRefused(
                f"{other}:// is no place for a source; give a path, http(s):// or s3://", code="unknown_scheme"
            )


async def reach(source: str, gate: InputPolicy) -> int | None:
    """Ask whether the source is there and not too large; its size in bytes, where the place says it."""
    place = open_input(source, gate)
    if isinstance(place, LocalFile):
        size: int | None = place.size
    else:
        try:
            async with place.open(0, None) as stream:
                size = stream.total
        except TransferBroken as error:
            raise SourceUnreachable(f"the source {place.shown} cannot be reached: {error}") from error
    check_size(size or 0, SourceBounds(source_bytes=gate.most_bytes))
    return size


async def download(source: str, path: Path, gate: InputPolicy, progress: Progress = silent) -> Fetched:
    """Bring a remote source into a file."""
    place = open_input(source, gate)
    assert not isinstance(place, LocalFile), "a local file is read in place"
    return await save(place, path, gate, progress)
