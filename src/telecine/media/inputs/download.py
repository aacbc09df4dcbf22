"""Bring bytes from a place into a file, whole and hashed, and go on where the line broke.

A place names its bytes by a mark (an ETag): only under the same mark may a download go on. Another mark means that
the source was changed in between, and half of one film is never joined to half of another.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from telecine.errors import MediaRefused, SourceUnreachable
from telecine.media.limits import SourceBounds, check_size

if TYPE_CHECKING:
    from telecine.media.inputs.address_policy import InputPolicy

BLOCK = 1 << 20
# In a row, without a new byte.
TRIES = 5

Progress = Callable[[float, float], None]


class TransferBroken(Exception):
    """The line broke, or the place asks for patience: the rest may come when it is asked again."""


@dataclass(frozen=True, slots=True)
class Fetched:
    size: int
    sha256: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DownloadStream:
    """Bytes on their way, from byte `at` on; `total` is the size of all of them, where it is known."""

    at: int
    total: int | None
    mark: str | None
    blocks: AsyncIterator[bytes]


class InputSource(Protocol):
    @property
    def shown(self) -> str:
        """Its address without secrets."""

    def open(self, at: int, mark: str | None) -> AbstractAsyncContextManager[DownloadStream]:
        """Ask for the bytes from `at` on, if they still bear the mark; a place that cannot begins at 0."""


def silent(done: float, of: float) -> None:
    """Report to nobody."""


async def save(place: InputSource, path: Path, gate: InputPolicy, progress: Progress = silent) -> Fetched:
    """Write the bytes of the place to the file."""
    saving = _Saving(place.shown, path, SourceBounds(source_bytes=gate.most_bytes))
    fruitless = 0
    while True:
        before = saving.size
        try:
            async with place.open(saving.resumes_at, saving.mark) as stream:
                saving.begin(stream)
                async for block in stream.blocks:
                    await asyncio.to_thread(saving.add, block)
                    progress(saving.size, max(saving.total or 2 * saving.size, 1))
            return saving.fetched()
        except TransferBroken as error:
            fruitless = 0 if saving.size > before else fruitless + 1
            if fruitless == TRIES:
                raise SourceUnreachable(
                    f"the source {place.shown} broke off at byte {saving.size} and does not go on: {error}"
                ) from error
            await asyncio.sleep(gate.pause_seconds * 2**fruitless)


class _Saving:
    """A file that grows; what is in it was hashed."""

    def __init__(self, shown: str, path: Path, bounds: SourceBounds) -> None:
        self._shown = shown
        self._path = path
        self._bounds = bounds
        self._hash = hashlib.sha256()
        self._began = False
        self.size = 0
        self.total: int | None = None
        self.mark: str | None = None

    @property
    def resumes_at(self) -> int:
        """Without a mark nobody can tell whether the rest belongs to what is there."""
        return self.size if self.mark else 0

    def begin(self, stream: DownloadStream) -> None:
        sizes = {self.total, stream.total} - {None}
        if self._began and (stream.mark != self.mark or len(sizes) > 1):
            raise changed(self._shown)
        check_size(stream.total or 0, self._bounds)
        self._began, self.mark, self.total = True, stream.mark, stream.total or self.total
        if stream.at == 0:
            self._hash, self.size = hashlib.sha256(), 0
            self._path.write_bytes(b"")
        elif stream.at != self.size:
            raise TransferBroken(f"the answer begins at byte {stream.at} instead of {self.size}")

    def add(self, block: bytes) -> None:
        check_size(self.size + len(block), self._bounds)
        with self._path.open("ab") as file:
            file.write(block)
        self._hash.update(block)
        self.size += len(block)

    def fetched(self) -> Fetched:
        if self.total is not None and self.size < self.total:
            raise TransferBroken(f"{self.total - self.size} bytes are missing")
        return Fetched(self.size, self._hash.hexdigest())


def changed(shown: str) -> MediaRefused:
    return MediaRefused(f"the source {shown} was changed while it was read; submit it again", code="source_changed")
