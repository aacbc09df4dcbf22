"""Bytes that outlive a lease: put whole, hashed, never changed. A local folder or a bucket, through obstore."""

from __future__ import annotations

import asyncio
import hashlib
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import obstore
from obstore.exceptions import BaseError
from obstore.store import LocalStore, ObjectStore, from_url

from telecine.errors import BadSpec, NotFound

CHUNK = 1 << 20


@dataclass(frozen=True, slots=True)
class Stored:
    size: int
    sha256: str


def key_of(job_id: int, stage: str, position: int, token: int, *, name: str) -> str:
    """`<job>/<stage>@<version>/<position>/<token>/<name>`: no two attempts ever write the same key."""
    parts = name.split("/")
    if any(part in ("", ".", "..") for part in parts) or "\\" in name or "\0" in name:
        raise BadSpec(f"artifact name {name!r} is not a plain relative path")
    return f"{job_id}/{stage}/{position}/{token}/{name}"


class Artifacts:
    """A folder (`/data`, `file:///data`) or a bucket (`s3://bucket/prefix`)."""

    def __init__(self, place: str) -> None:
        self._folder: Path | None = None
        self._store: ObjectStore
        try:
            if "://" in place and not place.startswith("file://"):
                self._store = from_url(place)
            else:
                self._folder = Path(place.removeprefix("file://")).resolve()
                self._folder.mkdir(parents=True, exist_ok=True)
                self._store = LocalStore(self._folder)
        except (OSError, ValueError, BaseError) as error:
            raise BadSpec(f"artifacts cannot be stored there: {str(error).splitlines()[0]}") from error

    async def put(self, key: str, path: Path) -> Stored:
        """Store the file under the key; what is hashed is what was stored."""
        return await asyncio.to_thread(self._put, key, path)

    async def get(self, key: str, path: Path) -> Stored:
        """Fetch the bytes into a file."""
        return await asyncio.to_thread(self._get, key, path)

    async def stat(self, key: str) -> int:
        """The size in bytes; `NotFound` if there is nothing."""
        try:
            return int((await obstore.head_async(self._store, key))["size"])
        except FileNotFoundError as error:
            raise NotFound(f"there is no artifact {key!r}") from error

    async def delete(self, key: str) -> None:
        """Remove it; one that is gone already is fine."""
        try:
            await obstore.delete_async(self._store, key)
        except FileNotFoundError:
            return

    def _put(self, key: str, path: Path) -> Stored:
        reading = _Reading(path)
        obstore.put(self._store, key, reading.chunks())
        if self._folder is not None:
            _flush(self._folder / key)
        return Stored(reading.size, reading.hash.hexdigest())

    def _get(self, key: str, path: Path) -> Stored:
        digest, size = hashlib.sha256(), 0
        try:
            found = obstore.get(self._store, key)
        except FileNotFoundError as error:
            raise NotFound(f"there is no artifact {key!r}") from error
        with path.open("wb") as file:
            for chunk in found.stream(min_chunk_size=CHUNK):
                file.write(chunk)
                digest.update(chunk)
                size += len(chunk)
        return Stored(size, digest.hexdigest())


class _Reading:
    def __init__(self, path: Path) -> None:
        self.size = 0
        self.hash = hashlib.sha256()
        self._path = path

    def chunks(self) -> Iterator[bytes]:
        with self._path.open("rb") as file:
            while chunk := file.read(CHUNK):
                self.size += len(chunk)
                self.hash.update(chunk)
                yield chunk


def _flush(path: Path) -> None:
    """A record in the database survives a power cut, so the bytes must too."""
    for place, flags in ((path, os.O_RDONLY), (path.parent, os.O_RDONLY | os.O_DIRECTORY)):
        handle = os.open(place, flags)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
