"""A film outside the engine: a folder that grows while it is encoded, or is written when it is done."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory

from telecine.apps.transcode.stages.recorded_rows import INIT, RecordedRows
from telecine.apps.transcode.videos.recorded_facts import RecordedFacts
from telecine.artifacts import Artifacts
from telecine.engine.queries.query_operations import Queries
from telecine.errors import NotFound, TelecineError
from telecine.facts import KeptArtifact
from telecine.media.hls.export import FolderBusy, HlsExport
from telecine.media.hls.playlists import Kind
from telecine.media.hls.recorded_film import Film

# In the end somebody else who writes into the folder is waited for; an export takes a while.
BUSY_SECONDS = 30.0
LOOK_SECONDS = 0.2


class FolderExport:
    """One job's film in a folder: `update` shows what may be watched already, `finish` the whole.

    A long film has thousands of rows and files, and those who watch it grow look often. So one `FolderExport` remembers
    what it has read and shown, and all that grows with the film is done in a thread: a worker may live on the same
    loop.
    """

    def __init__(self, views: Queries, artifacts: Artifacts, job_id: int, folder: Path, *, film: str = "") -> None:
        self._views = views
        self._artifacts = artifacts
        self._job_id = job_id
        self._folder = folder
        self._film = film
        self._forget()

    def _forget(self) -> None:
        self._recording = RecordedFacts(self._views, self._job_id)
        self._shown: Film | None = None
        self._prefix = 0

    async def update(self) -> int:
        """Show what there is; answers how many segments of all required renditions can be watched."""
        try:
            return await self._grow()
        except BaseException:
            self._forget()  # it may be a memory that is wrong: the next look reads everything
            raise

    async def finish(self) -> Path:
        """The whole film; the path of its master playlist."""
        self._forget()
        recorded = await self._recording.look()
        if recorded is None:
            raise NotFound(f"job {self._job_id} has nothing to show yet")
        if any(len(one.pieces) != recorded.segments for one in recorded.film.renditions):
            raise NotFound(f"parts of what job {self._job_id} has made are not there: make the film anew")
        extras = {one.kept.name: one.kept for one in await self._views.kept(self._job_id, "poster", "sprites")}
        clock = asyncio.get_running_loop().time
        late = clock() + BUSY_SECONDS
        while True:
            try:
                await self._write(recorded, extras)
            except FolderBusy:
                if clock() > late:
                    raise
                await asyncio.sleep(LOOK_SECONDS)
            else:
                return self._folder / "master.m3u8"

    async def _grow(self) -> int:
        if recorded := await self._recording.look():
            shown, prefix, is_new = await asyncio.to_thread(self._look, recorded.film)
            if prefix and is_new:
                await self._write(recorded, None)
            self._shown, self._prefix = shown, prefix
        return self._prefix

    def _look(self, film: Film) -> tuple[Film, int, bool]:
        shown = film.preview()
        return shown, shown.prefix, shown != self._shown

    # --- the folder --------------------------------------------------------------------------------------------------

    async def _write(self, recorded: RecordedRows, extras: Mapping[str, KeptArtifact] | None) -> None:
        carrier = _Carrier(self._artifacts)
        try:
            await asyncio.to_thread(self._export, recorded, extras, carrier)
        finally:
            carrier.stopped.set()

    def _export(self, recorded: RecordedRows, extras: Mapping[str, KeptArtifact] | None, carrier: _Carrier) -> None:
        with HlsExport(self._folder, str(self._job_id), self._film) as export, TemporaryDirectory() as spare:

            def place(kind: Kind, name: str, number: int) -> Path:
                kept = recorded.kept[name, INIT if kind == "init" else number]
                return carrier.bring(kept, Path(spare) / "piece")  # it is copied before the next one is asked for

            if extras is None:
                export.update(recorded.film, place)
                return
            beside = {
                name: carrier.bring(kept, Path(spare) / str(number))
                for number, (name, kept) in enumerate(extras.items())
            }
            export.finish(recorded.film, place, beside)


class _Carrier:
    """Brings files to a thread. Nobody can stop a thread, but whoever asks for the next file hears of `stopped`."""

    def __init__(self, artifacts: Artifacts) -> None:
        self._artifacts = artifacts
        self._loop = asyncio.get_running_loop()
        self.stopped = threading.Event()

    def bring(self, kept: KeptArtifact, spare: Path) -> Path:
        """Where the bytes lie; those in a bucket are brought here first."""
        assert kept.key is not None
        if self.stopped.is_set():
            raise TelecineError("nobody waits for this film any more")
        path = self._artifacts.path(kept.key)
        if path is None:
            asyncio.run_coroutine_threadsafe(self._artifacts.get(kept.key, spare), self._loop).result()
        return path or spare
