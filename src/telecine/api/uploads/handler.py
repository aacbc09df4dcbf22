"""What becomes of uploads: bytes belong to the platform, their meaning to the app that takes them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol

from telecine.engine.uploads.records import Upload
from telecine.settings import Settings


class UploadWishes(NamedTuple):
    """What the file is called, and what the app shall make of it."""

    name: str
    spec: dict[str, Any]


class UploadHandler(Protocol):
    """The app's side of uploads."""

    def wishes(self, said: Mapping[str, str], settings: Settings) -> UploadWishes:
        """The wishes among what the sender says about a file; `BadSpec` in one sentence if they make no sense."""

    async def check(self, handle: int, size: int) -> None:
        """Look into the whole file without trusting it; `MediaRefused` if it may not come in."""

    async def finish(self, upload: Upload, sha256: str) -> None:
        """Make it a subject with a job, in one transaction, exactly once however often this is called."""
