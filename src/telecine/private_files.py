"""Folders and files that only their owner may read: the database holds the secret that signs links."""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from pathlib import Path
from typing import Final

FOLDER: Final = 0o700
FILE: Final = 0o600
OTHERS: Final = 0o077
HOME: Final = ".telecine"  # the folder that is ours alone


def make_private_folder(path: Path) -> None:
    """Make the folder and whatever is missing above it. An existing one is left as it is, unless it is ours alone."""
    for folder in reversed([path, *path.parents]):
        if not os.path.isdir(folder):
            with suppress(FileExistsError):  # another process was faster; or it is a file, which mkdir below says
                folder.mkdir(mode=FOLDER)
        elif folder.name == HOME:
            close_to_others(folder)
    path.mkdir(exist_ok=True)


def make_private_file(path: Path) -> None:
    """Make an empty file, or take an existing one and its companions away from others."""
    with suppress(FileExistsError):
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, FILE))
    for one in (path, *companions(path)):
        close_to_others(one)


def companions(database: Path) -> list[Path]:
    """What SQLite keeps beside its file."""
    return [database.with_name(database.name + end) for end in ("-wal", "-shm", "-journal")]


def close_to_others(path: Path) -> None:
    """Whoever is not its owner cannot; then `doctor` says so."""
    with suppress(OSError):
        mode = path.stat().st_mode
        if mode & OTHERS and (stat.S_ISREG(mode) or path.name == HOME):
            path.chmod(stat.S_IMODE(mode) & ~OTHERS)


def is_open_to_others(path: Path) -> bool:
    try:
        return bool(path.stat().st_mode & OTHERS)
    except OSError:
        return False
