"""Scratch folders: one per attempt, removed afterwards; what a dead worker left is removed at the next start.

    <root>/<worker>.lock       locked (flock) for as long as the worker lives: the kernel lets go when it dies
    <root>/<worker>/<task>-<token>/

Whether a worker lives is the lock's business, not the database's: it holds between containers that share a disk, needs
no process ids, and a stopped worker still holds it. Whoever gets the lock of another may remove its folders.
"""

from __future__ import annotations

import fcntl
import os
import shutil
from contextlib import suppress
from pathlib import Path

from telecine.private_files import make_private_folder
from telecine.worker.attempts import Key


class Scratch:
    """This worker's part of the scratch folder."""

    def __init__(self, root: Path, name: str) -> None:
        self._root = root
        self._home = root / name
        self._lock: int | None = None
        self.used: set[Key] = set()

    def open(self) -> int:
        """Take our place; remove what dead workers left. Answers how many they were."""
        make_private_folder(self._root)
        self._lock = _take(self._home.with_suffix(".lock"))
        return sum(_remove_if_dead(path) for path in self._root.glob("*.lock") if path.stem != self._home.name)

    def folder(self, key: Key) -> Path:
        path = self._path(key)
        self.used.add(key)
        path.mkdir(parents=True, exist_ok=True)
        return path

    def fetched(self, key: Key, name: str) -> Path:
        """A place for an artifact's bytes, out of the way of what the handler makes."""
        folder = self.folder(key) / ".fetched"
        folder.mkdir(exist_ok=True)
        return folder / name

    def remove(self, key: Key) -> None:
        shutil.rmtree(self._path(key), ignore_errors=True)
        self.used.discard(key)

    def close(self) -> None:
        shutil.rmtree(self._home, ignore_errors=True)
        if self._lock is not None:
            with suppress(OSError):
                self._home.with_suffix(".lock").unlink()
            os.close(self._lock)
            self._lock = None

    def _path(self, key: Key) -> Path:
        return self._home / f"{key[0]}-{key[1]}"


def _take(path: Path) -> int | None:
    """Open and lock; None when somebody holds it. A lock on a file that was just removed does not count."""
    while True:
        lock = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if os.fstat(lock).st_ino == path.stat().st_ino:
                return lock
        except FileNotFoundError:
            pass
        except OSError:
            os.close(lock)
            return None
        os.close(lock)


def _remove_if_dead(path: Path) -> bool:
    lock = _take(path)
    if lock is None:
        return False
    shutil.rmtree(path.with_suffix(""), ignore_errors=True)
    with suppress(OSError):
        path.unlink()
    os.close(lock)
    return True
