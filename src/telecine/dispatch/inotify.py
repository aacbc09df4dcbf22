"""An ear on a file: Linux tells when somebody writes to it, so that nobody has to look all the time.

What it hears is a hint. A folder on another machine says nothing of what others write there, so whoever listens
looks now and then all the same, and stops listening when he saw what he had not heard.
"""

from __future__ import annotations

import ctypes
import os
import struct
import sys
from pathlib import Path
from typing import Self

_MODIFY, _CREATE, _MOVED_TO = 0x2, 0x100, 0x80
_OVERFLOW, _IGNORED = 0x4000, 0x8000
_HEAD = struct.Struct("iIII")  # which watch, what happened, cookie, length of the name
_ROOM = 1 << 16


class Ear:
    """Hears writes to the file and to what lies beside it under its name (`-wal`, `-journal`)."""

    def __init__(self, descriptor: int, name: bytes) -> None:
        self.descriptor = descriptor
        self._name = name

    @classmethod
    def at(cls, path: Path) -> Self | None:
        """None where there is nothing to hear with: another system, no such folder, too many watches."""
        if sys.platform != "linux":
            return None
        libc = ctypes.CDLL(None, use_errno=True)
        descriptor = libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        if descriptor < 0:
            return None
        # The folder, since the file beside it comes and goes; where the file really lies, as SQLite has it.
        real = path.resolve()
        if libc.inotify_add_watch(descriptor, os.fsencode(real.parent), _MODIFY | _CREATE | _MOVED_TO) < 0:
            os.close(descriptor)
            return None
        return cls(descriptor, os.fsencode(real.name))

    def heard(self) -> bool:
        """Was anything written since this was last asked? Never waits."""
        found = False
        while True:
            try:
                told = os.read(self.descriptor, _ROOM)
            except BlockingIOError:
                return found
            found = self._concerned(told) or found

    def _concerned(self, told: bytes) -> bool:
        at = 0
        while at < len(told):
            _, what, _, length = _HEAD.unpack_from(told, at)
            at += _HEAD.size + length
            if what & (_OVERFLOW | _IGNORED) or told[at - length : at].startswith(self._name):
                return True
        return False

    def close(self) -> None:
        os.close(self.descriptor)
