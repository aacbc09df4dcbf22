"""A film in a folder that any web server or player can use, also while it is still encoded.

    master.m3u8
    video/h264-720p/   init.mp4  seg_00000.m4s …  index.m3u8  iframe.m3u8
    audio/en-aac-2/    init.mp4  seg_00000.m4s …  index.m3u8
    telecine-export.json

Who reads meanwhile always sees a whole state: each file appears under its name by a rename, segments before the lists
that name them, the master last, and only then goes what nobody names any more. Another version of the film gets
folders of its own beside the old ones until then. What we wrote is noted in `telecine-export.json` *before* it is
written, so nothing of ours is ever unknown, and nothing of anybody else's is overwritten or removed.

Files are copied, never linked: whoever may write in the folder (a tagger, an editor) would change the artifact through
a hard link. `copy_file_range` shares the blocks where the file system can, so that a copy often costs nothing.
"""

from __future__ import annotations

import fcntl
import filecmp
import json
import os
import re
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path, PurePosixPath
from types import TracebackType

from telecine.errors import BadSpec, MediaError
from telecine.media import languages
from telecine.media.hls import playlists
from telecine.media.hls.playlists import Kind
from telecine.media.hls.recorded_film import Film, Rendition, VideoRendition

NOTE = "telecine-export.json"
MASTER = "master.m3u8"
FORMAT = 1
PART = ".part"  # what has it at the end of its name is not whole yet

Item = tuple[Kind, str, int]  # "init" or "segment", the rendition's name, the number
Place = Callable[[Kind, str, int], Path]

_CODECS = {
    "avc1": "h264", "avc3": "h264", "hvc1": "hevc", "hev1": "hevc", "av01": "av1", "vp09": "vp9", "mp4a": "aac",
    "ac-3": "ac3", "ec-3": "eac3",
}  # fmt: skip


class ExportLayout:
    """Where each file of a film lies: `path` from the folder's root, `uri` from the list that names it."""

    def __init__(self, folders: Mapping[str, str]) -> None:
        self._folders = folders

    def path(self, kind: Kind, rung: str, number: int) -> str:
        return f"{self._folders[rung]}/{_file(kind, number)}"

    def uri(self, kind: Kind, rung: str, number: int) -> str:
        return self.path(kind, rung, number) if kind in ("media", "iframes") else _file(kind, number)


class FolderBusy(BadSpec):
    """Somebody else writes into the folder; that ends soon, or never."""


class HlsExport:
    """One folder. Tell it `update` as often as there is more to see, then `finish`; both may be repeated.

    `version` tells one version from the next in the same folder: a job's id. With `film`, a folder that holds another
    film is refused: a slip of the finger must not take a stream from its viewers.
    """

    def __init__(self, folder: Path, version: str, film: str = "") -> None:
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise BadSpec(f"there can be no folder {folder}: {error.strerror}") from error
        self._film = film
        self.folder = folder.resolve()
        self._version = version
        self._homes: set[str] = set()  # folders that were seen to be inside
        self._lock = _locked(self.folder)
        try:
            self._written, self._folders, self._foreign = self._noted()
        except BaseException:
            os.close(self._lock)
            raise

    def __enter__(self) -> HlsExport:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        os.close(self._lock)

    def update(self, film: Film, place: Place) -> None:
        """Show what may be watched now of a film that is still encoded; `place` is asked for what is not there yet."""
        self._show(film, film.preview(), place, {})

    def finish(self, film: Film, place: Place, extras: Mapping[str, Path | bytes] | None = None) -> None:
        """Show the whole film and more files beside it (`poster.jpg`), then remove what an earlier state left."""
        named = self._show(film, film, place, extras or {})
        self._remove(set(self._written) - named)
        self._note()

    # --- writing -----------------------------------------------------------------------------------------------------

    def _show(self, film: Film, shown: Film, place: Place, extras: Mapping[str, Path | bytes]) -> set[str]:
        layout = self._layout(film)
        lists = _lists(shown, layout)
        items = {layout.path(*item): (item, mark) for item, mark in _items(shown)}
        named = {*items, *extras, *lists}
        there = self._there(items)
        lack = [path for path, (_, mark) in items.items() if path not in there or self._written.get(path) != mark]
        self._claim(named)
        for path in lack:
            item, mark = items[path]
            self._put(path, place(*item))
            self._written[path] = mark
        for path, content in extras.items():
            self._put(path, content)
        for path, text in lists.items():
            self._put(path, text.encode())
        self._note()
        return named

    def _claim(self, paths: set[str]) -> None:
        new = sorted(paths - set(self._written))
        for path in new:
            if (self._inside(path)).exists():
                raise BadSpec(f"{self.folder / path} is in the way: it was not written by an export, so it stays")
        if new:
            self._written |= dict.fromkeys(new, "")
            self._note()

    def _put(self, path: str, content: Path | bytes) -> None:
        to = self._inside(path)
        if to.is_file() and _same(to, content):
            return
        to.parent.mkdir(parents=True, exist_ok=True)
        part = to.with_name(to.name + PART)
        with part.open("wb") as file:
            if isinstance(content, bytes):
                file.write(content)
            else:
                _copy(content, file.fileno())
            file.flush()
            os.fsync(file.fileno())
        part.replace(to)

    def _remove(self, paths: set[str]) -> None:
        for path in sorted(paths):
            gone = self._inside(path)
            for file in (gone, gone.with_name(gone.name + PART)):
                file.unlink(missing_ok=True)
            for parent in list(PurePosixPath(path).parents)[:-1]:
                try:
                    (self.folder / parent).rmdir()
                except OSError:  # somebody else's file is in it, or it is gone
                    break
            self._written.pop(path)

    def _there(self, paths: Iterable[str]) -> set[str]:
        """Which files are in the folders of these: folders are listed, because a long film has thousands of files."""
        found: set[str] = set()
        for home in {path.rpartition("/")[0] for path in paths}:
            with suppress(FileNotFoundError), os.scandir(self._inside(f"{home}/{MASTER}").parent) as listed:
                found |= {f"{home}/{one.name}" for one in listed if one.is_file()}
        return found

    def _inside(self, path: str) -> Path:
        """The path in the folder; a note that was tampered with must not lead out of it."""
        to = self.folder / path
        home = path.rpartition("/")[0]
        if ".." in path.split("/") or (home not in self._homes and not to.parent.resolve().is_relative_to(self.folder)):
            raise BadSpec(f"{path!r} leads out of the export {self.folder}")
        self._homes.add(home)
        return to

    # --- the note ----------------------------------------------------------------------------------------------------

    def _noted(self) -> tuple[dict[str, str], dict[str, str], set[str]]:
        """What was written, this version's folders, and the folders of other versions."""
        try:
            note = json.loads((self.folder / NOTE).read_bytes())
            written = {str(path): str(mark) for path, mark in note["files"].items()}
            folders = {str(rung): str(folder) for rung, folder in note["folders"].items()}
            known = note["format"] == FORMAT
        except FileNotFoundError:
            if any(path.name != NOTE + PART for path in self.folder.iterdir()):
                raise BadSpec(f"{self.folder} is not empty and no export of Telecine: choose another folder") from None
            return {}, {}, set()
        except (ValueError, KeyError, AttributeError, TypeError) as error:
            raise BadSpec(f"{self.folder / NOTE} cannot be read: choose another folder") from error
        if not known:
            raise BadSpec(f"{self.folder} was exported by another release of Telecine: choose another folder")
        there = str(note.get("film") or "")
        if there and self._film and there != self._film:
            raise BadSpec(f"{self.folder} holds another film, {there}: choose another folder, or remove that one")
        self._film = self._film or there
        homes = {str(PurePosixPath(path).parent) for path in written}
        for home in homes.union(folders.values()):
            self._inside(f"{home}/{MASTER}")
        if note.get("version") != self._version:
            folders = {}
        return written, folders, homes - set(folders.values())

    def _note(self) -> None:
        note = {
            "format": FORMAT,
            "film": self._film,
            "version": self._version,
            "folders": self._folders,
            "files": self._written,
        }
        self._put(NOTE, json.dumps(note).encode())

    def _layout(self, film: Film) -> ExportLayout:
        for one in film.renditions:
            if one.name not in self._folders:
                taken = self._foreign | set(self._folders.values())
                self._folders[one.name] = next(name for name in _names(one) if name not in taken)
        return ExportLayout(self._folders)


def _items(film: Film) -> Iterator[tuple[Item, str]]:
    """Each init and segment that the lists name, with what tells it from another of the same name."""
    for one in film.renditions:
        yield ("init", one.name, 0), f"{one.init.size}:{one.init.sha256}"
        for piece in one.pieces:
            yield ("segment", one.name, piece.number), f"{piece.size}:{piece.sha256}"


def _lists(film: Film, layout: ExportLayout) -> dict[str, str]:
    """Every playlist by path, the master last."""
    lists = {layout.path("media", one.name, 0): playlists.media(film, one.name, layout.uri) for one in film.renditions}
    for video in film.videos:
        lists[layout.path("iframes", video.name, 0)] = playlists.iframes(film, video.name, layout.uri)
    return {**lists, MASTER: playlists.master(film, layout.uri)}


def _file(kind: Kind, number: int) -> str:
    if kind == "segment":
        return f"seg_{number:05}.m4s"
    return {"init": "init.mp4", "media": "index.m3u8", "iframes": "iframe.m3u8"}[kind]


def _names(one: Rendition) -> Iterator[str]:
    """Folders for a rendition, the best first."""
    codec = _CODECS.get(one.init.codecs.split(".")[0].lower(), one.init.codecs.split(".")[0].lower())
    if isinstance(one, VideoRendition):
        name = f"video/{_plain(codec)}-{_plain(one.name)}" + ("" if one.range == "SDR" else "-hdr")
    else:
        name = f"audio/{languages.tag(one.language) or 'und'}-{_plain(codec)}-{one.track.channels}"
    yield name
    number = 2
    while True:
        yield f"{name}-{number}"
        number += 1


def _plain(text: str) -> str:
    return re.sub(r"[^A-Za-z0-9_-]", "_", text)


def _locked(folder: Path) -> int:
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(handle)
        raise FolderBusy(f"another export is writing into {folder} just now") from None
    return handle


def _same(file: Path, content: Path | bytes) -> bool:
    if isinstance(content, bytes):
        return file.stat().st_size == len(content) and file.read_bytes() == content
    return filecmp.cmp(content, file, shallow=False)


def _copy(source: Path, target: int) -> None:
    with source.open("rb") as file:
        left = os.fstat(file.fileno()).st_size
        try:
            while left > 0 and (copied := os.copy_file_range(file.fileno(), target, left)):
                left -= copied
        except (AttributeError, OSError):  # another file system or another kernel: the plain way, from the beginning
            file.seek(0)
            os.lseek(target, 0, os.SEEK_SET)
            with os.fdopen(os.dup(target), "wb") as copy:
                shutil.copyfileobj(file, copy)
            left = 0
    if left:
        raise MediaError(f"{source} became shorter while it was copied")
