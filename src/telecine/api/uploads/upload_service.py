"""The desk of uploads: what all of its routes and its duty share for the life of a server."""

from __future__ import annotations

import asyncio
import hashlib
import logging
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

from starlette.types import Receive

from telecine.api.http.context import ServerContext
from telecine.api.uploads.body_writer import BodyWriter, RequestBody
from telecine.api.uploads.completion import UploadFinisher
from telecine.api.uploads.disk import UploadBusy, UploadDisk, UploadFile, UploadLost
from telecine.api.uploads.handler import UploadHandler, UploadWishes
from telecine.api.uploads.tus import Checksum, TusError
from telecine.artifacts import Artifacts
from telecine.engine import Engine
from telecine.engine.uploads.records import CHECKING, DONE, NewUpload, Upload
from telecine.errors import NotAllowed, NotFound, TooLarge
from telecine.facts import HOUR
from telecine.settings import Settings

log = logging.getLogger(__name__)

ROOM = "uploads"
LOOK_SECONDS = 10.0
WAIT_SECONDS = 0.05
WAITS = 40


class UploadService:
    def __init__(self, engine: Engine, artifacts: Artifacts, settings: Settings, handler: UploadHandler | None) -> None:
        self.settings = settings
        self.most = settings.max_source_bytes
        self._life = round(settings.upload_hours * HOUR)
        self.uploads = engine.uploads(self._life, settings.upload_quota_bytes)
        self._disk = UploadDisk(settings.uploads, settings.upload_reserve_bytes)
        self._world = engine.world
        self._duties = engine.outages
        self.finisher = UploadFinisher(self.uploads, self._disk, artifacts, handler)
        self._handler = handler
        self._lines: dict[str, RequestBody] = {}

    def wishes(self, said: Mapping[str, str], settings: Settings) -> UploadWishes:
        """What the sender wants, in the words of the app that takes uploads; `NotAllowed` if none does."""
        if self._handler is None:
            raise NotAllowed("no app that is installed here takes uploads: `telecine doctor` lists the apps")
        return self._handler.wishes(said, settings)

    async def begin(self, owner: str, name: str, length: int, told: tuple[dict[str, Any], dict[str, Any]]) -> Upload:
        """A new upload with its space promised; `told` is what the sender said of it, and wishes."""
        if length > self.most:
            raise TooLarge(
                f"a file of {length:,} bytes is not taken: at most {self.most:,} are; "
                "make it smaller or raise max_source_bytes"
            )
        metadata, spec = told
        new = NewUpload(id=self._world.new_id(), owner=owner, name=name, length=length, metadata=metadata, spec=spec)
        return await self.uploads.add(new, await asyncio.to_thread(self._disk.room))

    @asynccontextmanager
    async def slot(self, upload: Upload) -> AsyncIterator[UploadFile]:
        """Its file, for us alone; 423 while somebody else sends."""
        slot = await self._taken(upload)
        try:
            yield slot
        finally:
            slot.close()

    async def _taken(self, upload: Upload) -> UploadFile:
        waits = 0
        while True:
            try:
                return await asyncio.to_thread(self._disk.open, upload.id, create=not upload.received)
            except UploadBusy as error:
                line = self._lines.get(upload.id)
                waits = waits + 1 if waits or (line is not None and line.gives_way()) else WAITS
                if waits >= WAITS:
                    raise TusError(423, "locked", str(error), {"Retry-After": "2"}) from None
                await asyncio.sleep(WAIT_SECONDS)
            except UploadLost as error:
                raise _lost(error) from None

    async def hush(self, upload_id: str) -> None:
        """Whoever asks how far it is wants to go on: a line that has gone quiet is given up, and counted."""
        line = self._lines.get(upload_id)
        for _ in range(WAITS if line is not None and line.gives_way() else 0):
            if self._lines.get(upload_id) is not line:
                return
            await asyncio.sleep(WAIT_SECONDS)

    async def receive(
        self, house: ServerContext, receive: Receive, where: tuple[Upload, UploadFile, Checksum | None]
    ) -> RequestBody:
        """Take what comes on this line; the row says afterwards how much that was."""
        upload, slot, checksum = where
        at, running = self.finisher.hashes.pop(upload.id, (0, None))
        running = hashlib.sha256() if not upload.received else running if at == upload.received else None
        line = self._lines[upload.id] = RequestBody(receive, house.closing)
        slot.hashes = [running] if running is not None else []
        try:
            upload = await BodyWriter(self.uploads, upload, slot, checksum).take(line)
        except UploadLost as error:
            raise _lost(error) from None
        finally:
            self._lines.pop(upload.id, None)
        if running is not None and (line.whole or checksum is None):
            self.finisher.remember(upload, running)
        return line

    async def forget(self, upload_id: str, *, expired: bool = False) -> bool:
        """Row first: a file without a row is found and deleted later. One that somebody is sending stays."""
        try:
            with await asyncio.to_thread(self._disk.open, upload_id, create=False):
                gone = await self.uploads.drop(upload_id, expired=expired)
                if gone:
                    await asyncio.to_thread(self._disk.unlink, upload_id)
                return gone
        except UploadBusy:
            return False
        except UploadLost:
            return await self.uploads.drop(upload_id, expired=expired)

    # -- the duty --------------------------------------------------------------------------------------

    async def attend(self) -> None:
        """Every few seconds, until cancelled: finish, expire, tidy up."""
        while True:
            with self._duties.at("look after uploads"):
                await self.look()
            await asyncio.sleep(LOOK_SECONDS * (0.75 + 0.5 * self._world.dice.random()))

    async def look(self) -> None:
        """One pass over what is in this server's folder, and over what has expired anywhere."""
        here = set(await asyncio.to_thread(self._disk.names))
        for upload in await self.uploads.checking():
            if upload.id in here:
                await self.finisher.finish(upload.id)
            elif upload.now - upload.updated_at > self._life:
                await self.uploads.refuse(upload.id, "its bytes were lost before they were looked at: send it again")
        for upload_id in await self.uploads.expired():
            if await self.forget(upload_id, expired=True):
                log.info("upload %s was left unfinished or refused for too long, and is gone", upload_id)
        await self._tidy(sorted(here))

    async def _tidy(self, here: list[str]) -> None:
        """Files whose upload is over, or never was: their rows are written before them."""
        states = await self.uploads.states(here) if here else {}
        for name in here:
            if states.get(name) in (None, DONE, "refused"):
                await self._delete_file(name)

    async def _delete_file(self, name: str) -> None:
        try:
            with await asyncio.to_thread(self._disk.open, name, create=False):
                states = await self.uploads.states([name])
                if states.get(name) not in ("open", CHECKING):
                    await asyncio.to_thread(self._disk.unlink, name)
        except (UploadBusy, UploadLost, NotFound):
            return


def desk_of(house: ServerContext) -> UploadService:
    desk: UploadService = house.rooms[ROOM]
    return desk


def _lost(error: UploadLost) -> TusError:
    return TusError(410, "lost", f"{error}; begin a new upload, or ask the server that has it")
