"""An ear on a file: Linux tells when somebody writes to it, so that nobody has to look all the time.

What it hears is a hint. Some file systems say nothing of what others write, so whoever listens looks now and then all
the same, and stops listening when he sees what he had not heard.
"""

from __future__ import annotations

import ctypes
import os
import struct
import sys
from pathlib import Path
from typing import Self

# A file that is still open somewhere is not deleted yet: only its attributes change with its links.
_MODIFY, _ATTRIBUTES, _DELETED, _MOVED, _IGNORED = 0x2, 0x4, 0x400, 0x800, 0x8000
_MAYBE_GONE = _ATTRIBUTES | _DELETED | _MOVED
_HEAD = struct.Struct("iIII")  # which watch, what happened, cookie, length of the name
_ROOM = 1 << 14


class FileListener:
    """Hears writes to one file, for as long as that file is there."""

    def __init__(self, descriptor: int, path: Path, number: int) -> None:
        self.descriptor = descriptor
        self.is_gone = False  # the file was taken away; perhaps another one is there now
        self._path = path
        self._number = number

    @classmethod
    def at(cls, path: Path) -> Self | None:
        """None where there is nothing to hear with: another system, no such file, too many watches."""
        if sys.platform != "linux":
            return None
        libc = ctypes.CDLL(None, use_errno=True)
        descriptor = libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        if descriptor < 0:
            return None
        number = _number_of(path)
        if libc.inotify_add_watch(descriptor, os.fsencode(path), _MODIFY | _MAYBE_GONE) < 0:
            os.close(descriptor)
            return None
        return cls(descriptor, path, number)

    def heard(self) -> bool:
        """Was anything written since this was last asked? Never waits. The kernel joins what is the same."""
        try:
            told = os.read(self.descriptor, _ROOM)
        except BlockingIOError:
            return False
        at = happened = 0
        while at < len(told):
            _, what, _, length = _HEAD.unpack_from(told, at)
            at += _HEAD.size + length
            happened |= what
        if happened & (_MAYBE_GONE | _IGNORED):
            self.is_gone = bool(happened & _IGNORED) or _number_of(self._path) != self._number
        return bool(happened & _MODIFY) or self.is_gone

    def close(self) -> None:
        os.close(self.descriptor)


def _number_of(path: Path) -> int:
    try:
        return path.stat().st_ino
    except OSError:
        return 0
