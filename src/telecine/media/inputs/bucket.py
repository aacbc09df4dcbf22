"""A source in a bucket, s3://name/key, reached as artifacts are."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import obstore
from obstore.exceptions import BaseError, PermissionDeniedError, PreconditionError, UnauthenticatedError

from telecine.errors import NO_CREDENTIALS, MediaRefused, lacks_credentials
from telecine.media.inputs.address_policy import InputPolicy
from telecine.media.inputs.download import BLOCK, DownloadStream, TransferBroken, changed

if TYPE_CHECKING:
    from obstore import GetOptions, GetResult
    from obstore.store import ObjectStore

SCHEME = "s3://"


@dataclass(frozen=True, slots=True)
class BucketFile:
    """One object."""

    shown: str
    key: str
    store: ObjectStore

    @classmethod
    def at(cls, source: str, gate: InputPolicy) -> BucketFile:
        # No URL parser: a key may hold ? and #.
        bucket, _, key = source[len(SCHEME) :].partition("/")
        if not bucket or not key:
            raise MediaRefused(f"the source {source} names no object; give s3://bucket/key", code="source_missing")
        if gate.bucket is None:
            raise MediaRefused(f"the source {source} cannot be read here: no access to S3 is set up", code="no_s3")
        return cls(source, key, gate.bucket(f"{SCHEME}{bucket}"))

    @asynccontextmanager
    async def open(self, at: int, mark: str | None) -> AsyncIterator[DownloadStream]:
        options: GetOptions = {"range": {"offset": at}, "if_match": mark} if at and mark else {}
        with self._told():
            found = await obstore.get_async(self.store, self.key, options=options)
        meta = found.meta
        yield DownloadStream(at=found.range[0], total=meta["size"], mark=meta["e_tag"], blocks=self._blocks(found))

    async def _blocks(self, found: GetResult) -> AsyncIterator[bytes]:
        with self._told():
            async for block in found.stream(min_chunk_size=BLOCK):
                yield bytes(block)

    @contextmanager
    def _told(self) -> Iterator[None]:
        """Whatever the store says, as we say it."""
        try:
            yield
        except FileNotFoundError as error:
            raise MediaRefused(
                f"the source {self.shown} is not there; check its name", code="source_missing"
            ) from error
        except (PermissionError, PermissionDeniedError, UnauthenticatedError) as error:
            raise MediaRefused(
                f"the source {self.shown} may not be read; allow it to the worker's S3 key", code="source_forbidden"
            ) from error
        except PreconditionError as error:
            raise changed(self.shown) from error
        except (OSError, BaseError) as error:
            if lacks_credentials(error):
                raise TransferBroken(NO_CREDENTIALS) from error
            raise TransferBroken((str(error).strip().splitlines() or [type(error).__name__])[0][:300]) from error
