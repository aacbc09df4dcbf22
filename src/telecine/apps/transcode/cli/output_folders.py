"""Folders that a transcode writes to: which one is for which film, and whether it may be written to."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryFile
from typing import TYPE_CHECKING

from telecine.errors import BadSpec

if TYPE_CHECKING:
    from telecine.apps.transcode.spec import TranscodeSpec


def folder_for(output: str | None, spec: TranscodeSpec, count: int) -> Path | None:
    """One file goes into the folder itself, several each into one of their own."""
    if output is None:
        return None
    if not output.strip():
        raise BadSpec("-o names no folder; `-o .` is the one that you are in")
    return Path(output) if count == 1 else Path(output, Path(spec.source).stem)


def check_folders(files: Sequence[str], folders: Sequence[Path | None]) -> None:
    """Refuse a folder that is not ours to write into, or two films for one, before anything is made for it."""
    from telecine.media.hls.export import HlsExport

    taken: dict[Path, str] = {}
    for file, folder in zip(files, folders, strict=True):
        if folder is None:
            continue
        if other := taken.get(folder):
            raise BadSpec(f"{other} and {file} would both be written to {folder}: run one of them with another -o")
        taken[folder] = file
        if folder.exists():
            with HlsExport(folder, ""):
                _try_to_write(folder)
        else:
            _try_to_make(folder)


def check_film(folder: Path | None, video: str) -> None:
    """Refuse the folder of another film now, not when all is encoded."""
    from telecine.media.hls.export import HlsExport

    if folder is not None and folder.exists():
        with HlsExport(folder, "", video):
            pass


def _try_to_write(folder: Path) -> None:
    try:
        TemporaryFile(dir=folder).close()
    except OSError as error:
        raise BadSpec(f"nothing can be written into {folder}: {error.strerror}") from error


def _try_to_make(folder: Path) -> None:
    """Make it and take it away again: rights alone do not tell, and a command that refuses leaves nothing behind."""
    whole = folder.absolute()
    parent = next(one for one in whole.parents if one.exists())
    lacking = [one for one in (whole, *whole.parents) if parent in one.parents]
    made: list[Path] = []
    try:
        for one in reversed(lacking):
            if not one.exists():  # `new/..` is there as soon as `new` is
                one.mkdir()
                made.append(one)
    except OSError as error:
        raise BadSpec(f"there can be no folder {folder}: {parent} lets none be made ({error.strerror})") from error
    finally:
        with suppress(OSError):  # somebody has put something into it meanwhile: then it is his
            for one in reversed(made):
                one.rmdir()
