"""An upload that is whole becomes a subject with a job: hashed, checked by its app, put among the artifacts, submitted.

Each step may be done again after a crash, and the last one is a transaction that lets only one through: so whatever
stands at `checking` is simply finished once more, by whichever server has its bytes.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections import OrderedDict
from typing import Any

from telecine.api.uploads.disk import UploadBusy, UploadDisk, UploadFile, UploadLost
from telecine.api.uploads.handler import UploadHandler
from telecine.artifacts import Artifacts
from telecine.engine.uploads.records import CHECKING, OPEN, Upload, Uploads, key_of
from telecine.errors import ArtifactDamaged, ArtifactError, MediaRefused, Refused, StoreError

log = logging.getLogger(__name__)

ANSWER_SECONDS = 25.0  # a proxy between us and the sender may not wait much longer
MAX_HASHES = 1_000
# Whole files are read and copied by so many threads at most: other requests need the rest.
AT_ONCE = 2


class UploadFinisher:
    """Finishes uploads of which this server has the bytes."""

    def __init__(self, uploads: Uploads, disk: UploadDisk, artifacts: Artifacts, handler: UploadHandler | None) -> None:
        self._uploads = uploads
        self._disk = disk
        self._artifacts = artifacts
        self._handler = handler
        self._running: dict[str, asyncio.Task[Upload]] = {}
        self._turns = asyncio.Semaphore(AT_ONCE)
        self.hashes: OrderedDict[str, tuple[int, Any]] = (
            OrderedDict()
        )  # of uploads that this process saw from the start

    async def finish(self, upload_id: str, patience: float = ANSWER_SECONDS) -> Upload:
        """The upload as it is then: done or refused, or still `checking` if that takes longer."""
        task = self._running.get(upload_id)
        if task is None:
            task = asyncio.create_task(self._finish(upload_id), name=f"upload {upload_id}")
            self._running[upload_id] = task
            task.add_done_callback(lambda _: self._running.pop(upload_id, None))
        ended, _ = await asyncio.wait({task}, timeout=patience)
        return task.result() if ended else await self._uploads.find(upload_id)

    async def close(self) -> None:
        """What is under way is left to whoever comes next."""
        tasks = [*self._running.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def remember(self, upload: Upload, digest: Any) -> None:
        self.hashes[upload.id] = (upload.received, digest)
        if len(self.hashes) > MAX_HASHES:
            self.hashes.popitem(last=False)

    async def _finish(self, upload_id: str) -> Upload:
        try:
            with await asyncio.to_thread(self._disk.open, upload_id, create=False) as slot:
                upload = await self._uploads.find(upload_id)
                if upload.state == OPEN or self._handler is None:
                    return upload
                if upload.state == CHECKING:
                    await self._settle(upload, slot, self._handler)
                await asyncio.to_thread(self._disk.unlink, upload_id)
        except UploadBusy:
            pass  # somebody else is at it
        except (StoreError, ArtifactError, UploadLost, OSError) as error:
            log.warning("upload %s is whole, and cannot be finished now: %s", upload_id, error)
        return await self._uploads.find(upload_id)

    async def _settle(self, upload: Upload, slot: UploadFile, handler: UploadHandler) -> None:
        try:
            sha256 = await self._hashed(upload, slot)
            await self._look(upload, slot, sha256, handler)
            async with self._turns:
                stored = await self._artifacts.take(key_of(upload.id), slot.path)
            if stored is not None and stored.sha256 != sha256:
                raise ArtifactDamaged(f"upload {upload.id} was stored with another hash than it has")
            await handler.finish(upload, sha256)
        except (MediaRefused, Refused) as error:
            log.info("upload %s is refused: %s", upload.id, error)
            await self._uploads.refuse(upload.id, str(error))

    async def _hashed(self, upload: Upload, slot: UploadFile) -> str:
        at, digest = self.hashes.pop(upload.id, (0, None))
        if digest is not None and at == upload.length:
            return str(digest.hexdigest())
        async with self._turns:
            return await asyncio.to_thread(slot.sha256)

    async def _look(self, upload: Upload, slot: UploadFile, sha256: str, handler: UploadHandler) -> None:
        wanted = upload.spec.get("sha256")
        if wanted not in (None, sha256):
            raise MediaRefused(f"{upload.name} has another SHA-256 than was told with it: send it again")
        # Opened anew: a child that inherits it can only read, and holds no lock.
        handle = await asyncio.to_thread(os.open, slot.path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            await handler.check(handle, upload.length)
        finally:
            os.close(handle)
