"""Landlock by system calls: from here on only these places exist for this process."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Sequence
from pathlib import Path

from telecine.media.sandbox_layers import LANDLOCK_CREATE_RULESET, LANDLOCK_TCP_SINCE, landlock_abi

_ADD_RULE, _RESTRICT_SELF = 445, 446
_PATH_BENEATH = 1
_NO_NEW_PRIVS = 38

_WRITE_FILE, _READ_FILE, _READ_DIR = 1 << 1, 1 << 2, 1 << 3
_REMOVE_DIR, _REMOVE_FILE, _MAKE_DIR, _MAKE_REGULAR = 1 << 4, 1 << 5, 1 << 7, 1 << 8
_REFER, _TRUNCATE, _IOCTL_DEVICE = 1 << 13, 1 << 14, 1 << 15
_ALL_FILES = {1: (1 << 13) - 1, 2: (1 << 14) - 1, 3: (1 << 15) - 1, 4: (1 << 15) - 1, 5: (1 << 16) - 1}
_BIND_AND_CONNECT_TCP = 0b11
_ABSTRACT_SOCKETS_AND_SIGNALS = 0b11
_OWN_FOLDER = (
    _WRITE_FILE | _READ_FILE | _READ_DIR | _REMOVE_DIR | _REMOVE_FILE | _MAKE_DIR | _MAKE_REGULAR | _REFER | _TRUNCATE
)
_DRIVER = _READ_FILE | _READ_DIR | _WRITE_FILE | _IOCTL_DEVICE
_OF_A_FILE = _READ_FILE | _WRITE_FILE | _TRUNCATE | _IOCTL_DEVICE


class _Ruleset(ctypes.Structure):
    _fields_ = (("files", ctypes.c_uint64), ("net", ctypes.c_uint64), ("scoped", ctypes.c_uint64))


class _Beneath(ctypes.Structure):
    _pack_ = 1
    _fields_ = (("access", ctypes.c_uint64), ("parent", ctypes.c_int32))


def no_new_privileges() -> None:
    _call("prctl", _NO_NEW_PRIVS, 1, 0, 0, 0)


def restrict(scratch: Path, needs: Sequence[str] = ()) -> int | None:
    """Only the scratch folder, and what a driver needs. Answer the ABI; None: this kernel has no Landlock."""
    abi = landlock_abi()
    if abi is None:
        return None
    files = _ALL_FILES[min(abi, max(_ALL_FILES))]
    rules = _Ruleset(
        files=files,
        net=_BIND_AND_CONNECT_TCP if abi >= LANDLOCK_TCP_SINCE else 0,
        scoped=_ABSTRACT_SOCKETS_AND_SIGNALS if abi >= 6 else 0,
    )
    size = 8 if abi < LANDLOCK_TCP_SINCE else 16 if abi < 6 else 24
    ruleset = _syscall(LANDLOCK_CREATE_RULESET, ctypes.byref(rules), ctypes.c_size_t(size), ctypes.c_uint32(0))
    try:
        _allow(ruleset, scratch, _OWN_FOLDER & files)
        for pattern in needs:
            for place in Path("/").glob(pattern.lstrip("/")):
                _allow(ruleset, place, _DRIVER & files)
        _syscall(_RESTRICT_SELF, ruleset, ctypes.c_uint32(0))
    finally:
        os.close(ruleset)
    return abi


def _allow(ruleset: int, place: Path, access: int) -> None:
    parent = os.open(place, os.O_PATH | os.O_CLOEXEC)
    try:
        beneath = _Beneath(access=access if place.is_dir() else access & _OF_A_FILE, parent=parent)
        _syscall(_ADD_RULE, ruleset, _PATH_BENEATH, ctypes.byref(beneath), ctypes.c_uint32(0))
    finally:
        os.close(parent)


def _syscall(number: int, *arguments: object) -> int:
    return _call("syscall", number, *arguments)


def _call(name: str, *arguments: object) -> int:
    answer: int = getattr(ctypes.CDLL(None, use_errno=True), name)(*arguments)
    if answer < 0:
        code = ctypes.get_errno()
        raise OSError(code, f"{name}: {os.strerror(code)}")
    return answer
