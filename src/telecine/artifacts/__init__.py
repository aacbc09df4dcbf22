"""Bytes that outlive a lease: put whole, hashed, never changed. A local folder or a bucket, through obstore."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path

import obstore
from obstore.exceptions import BaseError, PreconditionError
from obstore.store import AzureStore, GCSStore, LocalStore, ObjectStore, S3Store, from_url

from telecine.artifacts import local
from telecine.artifacts.bucket import S3Access, open_bucket
from telecine.artifacts.names import key_for_lease, key_of
from telecine.errors import NO_CREDENTIALS, ArtifactError, ArtifactsFull, BadSpec, NotFound, is_full, lacks_credentials
from telecine.private_files import make_private_folder

__all__ = [
    "PART",
    "WINDOW",
    "Artifacts",
    "Moved",
    "S3Access",
    "Stored",
    "key_for_lease",
    "key_of",
    "open_bucket",
    "part_of",
    "unheard",
]

CHUNK = 1 << 20
# Larger files go up in parts; a bucket takes ten thousand of them. So many bytes are on their way at once.
PART = 8 << 20
MAX_PARTS = 9_000
MAX_FLYING = 32 << 20
# Larger ones come down in parts, too: no request lasts so long that it is cut off.
WINDOW = 8 << 20
AT_ONCE = 16
MAX_FLUSHED = 1_000
ERROR_CHARS = 300
NOT_PARTIAL = "non-partial response"


Moved = Callable[[int, int], None]


def unheard(done: int, of: int) -> None:
    """For bytes whose way nobody follows."""


@dataclass(frozen=True, slots=True)
class Stored:
    """What was stored. The store gives another `etag` to other bytes under the same key."""

    size: int
    sha256: str
    etag: str | None = field(default=None, compare=False)


def part_of(size: int) -> int:
    """How large the parts of a file are, so that a bucket takes them all."""
    return max(PART, -(-size // MAX_PARTS))


class Artifacts:
    """A folder (`/data`, `file:///data`) or a bucket (`s3://bucket/prefix`)."""

    def __init__(self, place: str, s3: S3Access | None = None) -> None:
        self._folder: Path | None = None
        self._store: ObjectStore
        self._ranges = True  # until a server shows that it cannot
        self._flushed: set[Path] = set()  # folders that are on the disk, with the way to them
        try:
            if place.startswith("s3://"):
                self._store = open_bucket(place, s3 or S3Access())
            elif "://" in place and not place.startswith("file://"):
                self._store = from_url(place)
            else:
                self._folder = Path(place.removeprefix("file://")).resolve()
                make_private_folder(self._folder)
                self._store = LocalStore(self._folder)
        except (OSError, ValueError, BaseError) as error:
            raise BadSpec(f"artifacts cannot be stored there: {_first_line(error)}") from error

    @property
    def folder(self) -> Path | None:
        """The local folder, if it is one."""
        return self._folder

    def path(self, key: str) -> Path | None:
        """Where the bytes are, in a local folder. For reading only."""
        return None if self._folder is None else self._folder / key

    async def put(self, key: str, path: Path, moved: Moved = unheard) -> Stored:
        """Store the file under the key, whole or not at all; what is hashed is what was stored.

        Here and below, `moved` hears in another thread how far it is; what it raises is the end of it.
        """
        return await asyncio.to_thread(self._put, key, path, moved)

    async def take(self, key: str, path: Path) -> Stored | None:
        """Store a file that stays as it is from now on. On the same disk nothing is copied, hence nothing hashed."""
        folder = self._folder
        if folder is not None and await asyncio.to_thread(local.linked, folder, key, path):
            await asyncio.to_thread(self._flush, folder / key, folder)
            return None
        return await self.put(key, path)

    async def get(self, key: str, path: Path, moved: Moved = unheard) -> Stored:
        """Fetch the bytes into a file."""
        return await asyncio.to_thread(self._get, key, path, moved)

    async def read(self, key: str, start: int = 0, length: int | None = None, *, size: int | None = None) -> bytes:
        """Some bytes, or all from `start` on; fewer where the artifact ends. Who knows its size spares a question."""
        if start < 0 or (length is not None and length < 0):
            raise BadSpec(f"there are no bytes {start} + {length}")
        size = await self.stat(key) if size is None else size
        length = max(0, size - start if length is None else min(length, size - start))
        if length == 0:
            return b""
        with _told(key, "read"):
            if self._ranges:
                try:
                    return bytes(await obstore.get_range_async(self._store, key, start=start, length=length))
                except BaseError as error:
                    if NOT_PARTIAL not in str(error):
                        raise
                    self._ranges = False
            return await asyncio.to_thread(self._cut, key, start, length)

    async def read_unchanged(self, key: str, etag: str) -> bytes | None:
        """All bytes, if they are still those that got this `etag`; None if others took their place."""
        with _told(key, "read"):
            try:
                found = await obstore.get_async(self._store, key, options={"if_match": etag})
            except PreconditionError:
                return None
            # Some servers take no notice of the condition.
            return bytes(await found.bytes_async()) if found.meta["e_tag"] == etag else None

    def _cut(self, key: str, start: int, length: int) -> bytes:
        """For servers that mark a part as if it were the whole (`rclone serve s3`): read up to it, and cut."""
        found = bytearray()
        for chunk in obstore.get(self._store, key).stream(min_chunk_size=CHUNK):
            found += chunk
            if len(found) >= start + length:
                break
        return bytes(found[start : start + length])

    async def digest(self, key: str, moved: Moved = unheard) -> Stored:
        """Size and hash of what is there now."""
        return await asyncio.to_thread(self._digest, key, moved)

    async def stat(self, key: str) -> int:
        """The size in bytes; `NotFound` if there is nothing."""
        with _told(key, "found"):
            return int((await obstore.head_async(self._store, key))["size"])

    async def link(self, key: str, seconds: float) -> str | None:
        """An address to which anybody may PUT these bytes for so long; None where there is no such thing."""
        if not isinstance(self._store, (AzureStore, GCSStore, S3Store)):
            return None
        try:
            return await obstore.sign_async(self._store, "PUT", key, timedelta(seconds=seconds))
        except (ValueError, BaseError):  # it has no key to sign with
            return None

    async def under(self, prefix: str) -> list[str]:
        """All keys below `prefix`, a folder's name; in a local folder also what a crash left half written."""
        if self._folder is not None:
            return await asyncio.to_thread(local.files_under, self._folder, prefix)
        found: list[str] = []
        with _told(prefix, "listed"):
            async for some in obstore.list(self._store, prefix=prefix.strip("/"), chunk_size=1000):
                found += [item["path"] for item in some]
        return found

    async def delete(self, key: str) -> None:
        """Remove it; one that is gone already is fine."""
        with suppress(NotFound), _told(key, "deleted"):
            if self._folder is not None:
                await asyncio.to_thread(local.unlink, self._folder, key)
            else:
                await obstore.delete_async(self._store, key)

    async def delete_many(self, keys: Sequence[str]) -> dict[str, ArtifactError]:
        """Remove these, some at a time; with which it did not work, and why."""
        failed: dict[str, ArtifactError] = {}
        for start in range(0, len(keys), AT_ONCE):
            some = keys[start : start + AT_ONCE]
            ends = await asyncio.gather(*(self.delete(key) for key in some), return_exceptions=True)
            for key, end in zip(some, ends, strict=True):
                if isinstance(end, ArtifactError):
                    failed[key] = end
                elif end is not None:
                    raise end
        return failed

    def _put(self, key: str, path: Path, moved: Moved) -> Stored:
        size = path.stat().st_size
        reading, part = HashingReader(path, size, moved), part_of(size)
        with _told(key, "stored"):
            if size <= PART:
                content = b"".join(reading.chunks())
                put = obstore.put(self._store, key, content, use_multipart=False)
            else:
                flying = MAX_FLYING // part
                put = obstore.put(self._store, key, reading.chunks(), chunk_size=part, max_concurrency=max(2, flying))
            if self._folder is not None:
                self._flush(self._folder / key, self._folder)
        return replace(reading.stored, etag=put["e_tag"])

    def _flush(self, path: Path, folder: Path) -> None:
        """A record in the database survives a power cut, so the bytes must too, and the way to them."""
        local.flush(path)
        local.flush(path.parent)
        if path.parent not in self._flushed:
            for parent in path.parent.parents:
                if parent == folder or folder in parent.parents:
                    local.flush(parent)
            self._flushed = {path.parent} if len(self._flushed) > MAX_FLUSHED else self._flushed | {path.parent}

    def _get(self, key: str, path: Path, moved: Moved) -> Stored:
        digest, size = hashlib.sha256(), 0
        with _told(key, "fetched"), path.open("wb") as file:
            for chunk in self._chunks(key, moved):
                file.write(chunk)
                digest.update(chunk)
                size += len(chunk)
        return Stored(size, digest.hexdigest())

    def _digest(self, key: str, moved: Moved) -> Stored:
        digest, size = hashlib.sha256(), 0
        with _told(key, "read"):
            for chunk in self._chunks(key, moved):
                digest.update(chunk)
                size += len(chunk)
        return Stored(size, digest.hexdigest())

    def _chunks(self, key: str, moved: Moved) -> Iterator[bytes]:
        found = obstore.get(self._store, key)
        size, done = found.meta["size"], 0
        whole = self._folder is not None or size <= WINDOW
        for chunk in found.stream(min_chunk_size=CHUNK) if whole else self._windows(key, size):
            done += len(chunk)
            moved(done, size)
            yield bytes(chunk)

    def _windows(self, key: str, size: int) -> Iterator[bytes]:
        for start in range(0, size, WINDOW) if self._ranges else ():
            try:
                yield bytes(obstore.get_range(self._store, key, start=start, length=min(WINDOW, size - start)))
            except BaseError as error:
                if NOT_PARTIAL not in str(error) or start:
                    raise
                self._ranges = False
                break
        if not self._ranges:
            yield from (bytes(chunk) for chunk in obstore.get(self._store, key).stream(min_chunk_size=CHUNK))


@contextmanager
def _told(key: str, done: str) -> Iterator[None]:
    """Whatever the store says, in one sentence of ours."""
    try:
        yield
    except FileNotFoundError as error:
        if done == "stored":
            raise ArtifactError(f"artifact {key!r} could not be stored: its bucket does not exist") from error
        raise NotFound(f"there is no artifact {key!r}") from error
    except (OSError, BaseError) as error:
        if is_full(error):
            raise ArtifactsFull(f"artifact {key!r} could not be {done}: the disk is full, free some space") from error
        raise ArtifactError(f"artifact {key!r} could not be {done}: {_first_line(error)}") from error


def _first_line(error: Exception) -> str:
    if lacks_credentials(error):
        return NO_CREDENTIALS
    lines = str(error).strip().splitlines()
    return (lines[0] if lines else type(error).__name__)[:ERROR_CHARS]


class HashingReader:
    """A file on its way into the store, hashed as it goes."""

    def __init__(self, path: Path, of: int, moved: Moved) -> None:
        self._path = path
        self._of = of
        self._moved = moved
        self._size = 0
        self._hash = hashlib.sha256()

    def chunks(self) -> Iterator[bytes]:
        with self._path.open("rb") as file:
            while chunk := file.read(CHUNK):
                self._size += len(chunk)
                self._hash.update(chunk)
                self._moved(self._size, self._of)
                yield chunk

    @property
    def stored(self) -> Stored:
        return Stored(self._size, self._hash.hexdigest())
