"""What the doctor says about folders and files: whether they can be made, and who may read them."""

from __future__ import annotations

import errno
import os
import shutil
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from telecine.cli import format
from telecine.private_files import FOLDER, HOME, companions, is_open_to_others

if TYPE_CHECKING:
    from telecine.settings import Settings

MIN_FREE = 1_000_000_000


@dataclass(frozen=True, slots=True)
class DoctorCheck:
    """What was looked at and how it is; only `wrong` makes the doctor's exit code 1."""

    name: str
    verdict: Literal["ok", "warning", "wrong"]
    finding: str


def examine_privacy(settings: Settings) -> DoctorCheck:
    """The database of one machine holds the secret that signs links: nobody else may read it."""
    from telecine.wiring import sqlite_path
    from telecine.wiring.database import is_sqlite

    ours = [Path(HOME)]
    if is_sqlite(settings.database_url):
        path = sqlite_path(settings.database_url)
        ours += [path, *companions(path)]
    found = [path for path in ours if is_open_to_others(path)]
    if not found:
        return DoctorCheck("privacy", "ok", "nobody else on this machine may read the state in files")
    names = " ".join(map(str, found))
    mine = all(path.stat().st_uid == os.geteuid() for path in found)
    hint = "the next command that opens it ends that" if mine else "its owner must end that"
    return DoctorCheck(
        "privacy", "warning" if mine else "wrong", f"others may read {names}: `chmod go= {names}`; {hint}"
    )


def is_folder(path: Path) -> bool:
    """Also of a path that is too long to be one."""
    return os.path.isdir(path)


def _try_folder(path: Path) -> int:
    """Make the folder and a file in it, remove what was made; how many bytes are free there."""
    from tempfile import TemporaryFile

    made: list[Path] = []
    try:
        for folder in reversed([path, *path.parents]):
            if os.path.lexists(folder) and not os.path.isdir(folder):
                raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR))
            if not os.path.isdir(folder):
                folder.mkdir(mode=FOLDER)
                made.append(folder)
        with TemporaryFile(dir=path):
            return shutil.disk_usage(path).free
    finally:
        for folder in reversed(made):
            with suppress(OSError):
                folder.rmdir()


def examine_folder(name: str, path: Path) -> DoctorCheck:
    """Can a worker of this user write there, and is there room? What is made for the trial is removed."""
    try:
        free = _try_folder(path.absolute())
    except OSError as error:
        return DoctorCheck(name, "wrong", f"{path} is not writable: {error.strerror or error}")
    room = f"{path}, {format.size(free)} free"
    if free < MIN_FREE:
        return DoctorCheck(name, "warning", f"{room}: that is little")
    return DoctorCheck(name, "ok", room)
