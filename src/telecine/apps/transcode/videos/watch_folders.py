"""Watched folders: a film that is put there is transcoded by itself, once it has settled.

Every few seconds the folder is looked through; no file system has to tell us anything. A file whose size and time of
change have stayed for a while is looked into in the sandbox and begun as a job, read in place. What was looked at is
remembered in the database, so nothing is taken twice, tried for ever, or complained about again. One process of a
machine looks; machines that share a folder may both see a film, which is one job all the same: its hash says so.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from telecine.apps.transcode.spec import parse
from telecine.apps.transcode.videos.start import start_video
from telecine.apps.transcode.videos.upload_check import UploadProbe, looker_of
from telecine.errors import LockHeld, MediaRefused, Refused
from telecine.facts import MINUTE
from telecine.json_text import is_storable
from telecine.locks.guard import lock
from telecine.wiring import Parts, make_locks

log = logging.getLogger(__name__)

LOOK_SECONDS = 2.0
SHARE = 5  # at most one part in so many of the time is spent on looking
MAX_FILES = 100_000
MAX_DEPTH = 16
BATCH = 500
TOUCH_SECONDS = 6 * 3_600.0
FILMS = {
    ".3gp", ".avi", ".flv", ".m2ts", ".m2v", ".m4v", ".mkv", ".mov", ".mp4", ".mpeg", ".mpg", ".mts", ".mxf", ".ogv",
    ".ts", ".vob", ".webm", ".wmv", ".aac", ".flac", ".m4a", ".mp3", ".ogg", ".opus", ".wav",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class WatchedFile:
    """A file, and what changes when somebody writes to it."""

    path: str
    identity: str


def films_in(folder: Path) -> Iterator[WatchedFile]:
    """Films below the folder, by their names. Hidden ones and links are none; half a download has another ending."""
    waiting, seen = [(str(folder), 0)], 0
    while waiting:
        at, depth = waiting.pop()
        try:
            entries = sorted(os.scandir(at), key=lambda entry: entry.name)
        except OSError:
            continue  # gone meanwhile, or not ours to read
        for entry in entries:
            seen += 1
            if entry.name.startswith(".") or seen > MAX_FILES:
                continue
            try:
                if entry.is_dir(follow_symlinks=False) and depth < MAX_DEPTH:
                    waiting.append((entry.path, depth + 1))
                elif Path(entry.name).suffix.lower() in FILMS and entry.is_file(follow_symlinks=False):
                    facts = entry.stat(follow_symlinks=False)
                    if facts.st_size:
                        yield WatchedFile(entry.path, f"{facts.st_size}-{facts.st_mtime_ns}")
            except OSError:
                continue


class FolderWatcher:
    """Looks after one folder."""

    def __init__(self, parts: Parts, folder: Path, looker: UploadProbe) -> None:
        self.folder = folder.resolve()
        self._engine = parts.engine
        self._mono = parts.world.mono
        self._settle = parts.settings.watch_settle_seconds
        self._watched = parts.engine.watched_files
        self._looker = looker
        self._since: dict[str, tuple[str, float]] = {}  # what files look like, and since when
        self._known: dict[str, str] = {}  # what they looked like when they were taken
        self._missing = False
        self._touch_at = 0.0

    async def look(self) -> int:
        """One pass; how many films were begun."""
        found = await asyncio.to_thread(lambda: list(films_in(self.folder)))
        self._tell_if_missing()
        await self._remember(found)
        settled = self._settled(found)
        count = 0
        for start in range(0, len(settled), BATCH):
            some = settled[start : start + BATCH]
            known = await self._watched.known([one.path for one in some])
            for one in some:
                if known.get(one.path) != one.identity:
                    count += await self._take(one)
                else:
                    self._known[one.path] = one.identity
        return count

    async def _remember(self, found: list[WatchedFile]) -> None:
        """Say a few times a day what is still there, so that it is not forgotten."""
        if self._mono() < self._touch_at:
            return
        paths = [one.path for one in found if is_storable(one.path)]
        for start in range(0, len(paths), BATCH):
            await self._watched.touch(paths[start : start + BATCH])
        self._touch_at = self._mono() + TOUCH_SECONDS

    def _settled(self, found: list[WatchedFile]) -> list[WatchedFile]:
        """Those that nobody knows and that have not changed for long enough."""
        now = self._mono()
        before, self._since = self._since, {}
        for one in found:
            identity, since = before.get(one.path, (one.identity, now))
            self._since[one.path] = (one.identity, since if identity == one.identity else now)
        self._known = {one.path: one.identity for one in found if self._known.get(one.path) == one.identity}
        return [
            one
            for one in found
            if one.path not in self._known
            and now - self._since[one.path][1] >= self._settle
            and self._can_be_named(one)
        ]

    def _can_be_named(self, one: WatchedFile) -> bool:
        if is_storable(one.path):
            return True
        log.warning("a film is left alone, since its name is no text: %r", one.path)
        self._known[one.path] = one.identity
        return False

    async def _take(self, one: WatchedFile) -> bool:
        try:
            await self._look_into(one)
            begun = await start_video(self._engine, parse({"source": one.path}))
        except OSError as error:
            if not isinstance(error, FileNotFoundError):  # whoever may not read it says so until he is started anew
                log.warning("%s is not taken: %s", one.path, error.strerror)
                self._known[one.path] = one.identity
            return False
        except (MediaRefused, Refused) as error:
            if not await asyncio.to_thread(os.path.exists, one.path):
                return False  # taken away while we looked
            log.warning("%s is not taken: %s", one.path, error)
            await self._watched.put(one.path, one.identity, error=str(error))
            return False
        log.info("%s became job %s (%s)", one.path, begun.job_id, begun.how)
        await self._watched.put(one.path, one.identity, job_id=begun.job_id, subject_id=begun.video)
        return True

    async def _look_into(self, one: WatchedFile) -> None:
        handle = await asyncio.to_thread(os.open, one.path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            await self._looker(handle, os.fstat(handle).st_size)
        finally:
            os.close(handle)

    def _tell_if_missing(self) -> None:
        missing = not self.folder.is_dir()
        if missing and not self._missing:
            log.warning("the watched folder %s is not there; it is looked for again and again", self.folder)
        self._missing = missing


@asynccontextmanager
async def watching(parts: Parts) -> AsyncIterator[None]:
    """Look after the folders of the settings while the body runs."""
    looker = looker_of(parts)
    watchers = [FolderWatcher(parts, Path(folder), looker) for folder in parts.settings.watch]
    duties = [asyncio.create_task(_attend(parts, one), name=f"watch {one.folder}") for one in watchers]
    try:
        yield
    finally:
        for duty in duties:
            duty.cancel()
        await asyncio.gather(*duties, return_exceptions=True)


async def _attend(parts: Parts, watcher: FolderWatcher) -> None:
    locks, world = make_locks(parts), parts.world
    name = f"telecine/watch:{world.machine.hostname}:{watcher.folder}"[:250]
    while True:
        with parts.engine.outages.at(f"look into {watcher.folder}"), suppress(LockHeld):  # of another server here
            async with lock(locks, name, MINUTE, worker=parts.settings.worker_name, world=world):
                await _look_on(parts, watcher)
        await asyncio.sleep(LOOK_SECONDS * (0.75 + 0.5 * world.dice.random()))


async def _look_on(parts: Parts, watcher: FolderWatcher) -> None:
    """While the lock is ours; each look that succeeds says so, since this ends only when one fails."""
    mono = parts.world.mono
    while True:
        began = mono()
        await watcher.look()
        parts.engine.outages.found(f"look into {watcher.folder}")
        await asyncio.sleep(max(LOOK_SECONDS, SHARE * (mono() - began)))
