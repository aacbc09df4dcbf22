"""From the line to the disk: what is written down as received was flushed before.

A line that has gone quiet is given up after a while, and at once if the same sender comes back on another one: whose
network broke is not kept out by his own ghost.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

from starlette.types import Receive

from telecine.api.uploads.disk import UploadFile
from telecine.api.uploads.tus import MISMATCH, Checksum, TusError
from telecine.engine.uploads.records import Upload, Uploads
from telecine.errors import TooLarge

STALL_SECONDS = 30.0
QUIET_SECONDS = 1.0  # after so long, somebody else may have the place
WRITE_BYTES = 1 << 20
RECORD_BYTES = 32 << 20
RECORD_SECONDS = 2.0


class RequestBody:
    """One request's body as it comes. `whole` is false if it broke off."""

    def __init__(self, receive: Receive, closing: asyncio.Event) -> None:
        self._receive = receive
        self._closing = closing
        self._patience: asyncio.Timeout | None = None
        self._heard = self._now()
        self.whole = False

    async def blocks(self) -> AsyncIterator[bytes]:
        more = True
        while more and not self._closing.is_set():
            try:
                async with asyncio.timeout(STALL_SECONDS) as self._patience:
                    message = await self._receive()
            except TimeoutError:
                return
            finally:
                self._patience = None
            if message["type"] != "http.request":
                return
            self._heard = self._now()
            more = message.get("more_body", False)
            if block := message.get("body", b""):
                yield block
        self.whole = not more

    def gives_way(self) -> bool:
        """Whether it leaves now, since nothing has come for a while."""
        if self._patience is None or self._now() - self._heard < QUIET_SECONDS:
            return False
        self._patience.reschedule(self._now())
        return True

    def _now(self) -> float:
        return asyncio.get_running_loop().time()


class BodyWriter:
    """One request's bytes, from its upload's offset on."""

    def __init__(self, uploads: Uploads, upload: Upload, slot: UploadFile, checksum: Checksum | None) -> None:
        self._uploads = uploads
        self.upload = upload
        self._slot = slot
        self._checksum = checksum
        self._hash: Any = None if checksum is None else checksum.begin()
        self._written = upload.received
        self._recorded_at = self._now()

    async def take(self, line: RequestBody) -> Upload:
        """Write what comes; the upload as it stands then. Bytes with a wrong checksum were never here."""
        await asyncio.to_thread(self._slot.cut, self.upload.received)
        if self._hash is not None:
            self._slot.hashes.append(self._hash)
        try:
            await self._write(line)
            await self._end(line.whole)
        finally:
            if self._hash is not None:
                self._slot.hashes.remove(self._hash)
        return self.upload

    async def _write(self, line: RequestBody) -> None:
        waiting = bytearray()
        async for block in line.blocks():
            waiting += block
            if self._written + len(waiting) > self.upload.length:
                raise TooLarge(f"upload {self.upload.id} has {self.upload.length} bytes, and more than these came")
            if len(waiting) >= WRITE_BYTES:
                await self._flush(waiting)
        await self._flush(waiting)

    async def _flush(self, waiting: bytearray) -> None:
        block = bytes(waiting)
        waiting.clear()
        await asyncio.to_thread(self._slot.write, block)
        self._written += len(block)
        new = self._written - self.upload.received
        aged = self._now() - self._recorded_at > RECORD_SECONDS
        # The last bytes end the intake: they are written down when the line says that nothing follows.
        if self._checksum is None and self._written < self.upload.length and (new >= RECORD_BYTES or (new and aged)):
            await self._record()

    async def _end(self, whole: bool) -> None:
        if self._checksum is not None:
            if not whole:
                return  # nobody can tell whether they are right
            if self._hash.digest() != self._checksum.digest:
                raise TusError(
                    MISMATCH, "checksum_mismatch", "these bytes are not those that were sent: send them again"
                )
        if self._written > self.upload.received:
            await self._record()

    async def _record(self) -> None:
        await asyncio.to_thread(self._slot.sync, name=not self.upload.received)
        self.upload = await self._uploads.grow(self.upload, self._written)
        self._recorded_at = self._now()

    def _now(self) -> float:
        return asyncio.get_running_loop().time()
