"""The walls that this kernel offers for the media child. Asking changes nothing for whoever asks.

landlock   files: only the scratch folder; TCP from ABI 4; signals and abstract sockets from ABI 6
netns      an empty network namespace: no UDP either
seccomp    no new sockets, connections, programs, processes; no change to modes, times or attributes of files, to other
           processes, to roots: all that is out of Landlock's reach
rlimits    memory, CPU time, file size, descriptors
"""

from __future__ import annotations

import ctypes
import os
import sys
from dataclasses import dataclass
from pathlib import Path

LANDLOCK_CREATE_RULESET = 444  # the same number on all architectures
LANDLOCK_TCP_SINCE = 4
_ASK_VERSION = 1
SECCOMP = {"x86_64": 317, "aarch64": 277}
_ASK_ACTION, _ERRNO_ACTION = 2, 0x00050000
# Each may be absent; a zero forbids user namespaces to ordinary users.
_USERNS_GATES = (
    "/proc/sys/user/max_user_namespaces",
    "/proc/sys/user/max_net_namespaces",
    "/proc/sys/kernel/unprivileged_userns_clone",
)
_APPARMOR_GATE = "/proc/sys/kernel/apparmor_restrict_unprivileged_userns"


@dataclass(frozen=True, slots=True, kw_only=True)
class SandboxLayers:
    """What a media child will find. `netns` is read from settings: only a child can really try."""

    landlock: int | None
    tcp: bool
    netns: bool
    seccomp: bool
    rlimits: bool

    @property
    def missing(self) -> tuple[str, ...]:
        """What is not there, in words."""
        lacks = (
            (self.landlock is None, "no Landlock: a media child could read other files of its user"),
            (self.landlock is not None and not self.tcp, "Landlock is too old for TCP rules"),
            (not self.netns, "no network namespace: a media child could send UDP"),
            (not self.seccomp, "no seccomp: a media child could connect to Unix sockets, and change what its user has"),
            (not self.rlimits, "no resource limits on this system"),
        )
        return tuple(words for lack, words in lacks if lack)


def offered() -> SandboxLayers:
    """What this machine offers."""
    abi = landlock_abi()
    return SandboxLayers(
        landlock=abi,
        tcp=abi is not None and abi >= LANDLOCK_TCP_SINCE,
        netns=_netns_is_open(),
        seccomp=seccomp_is_offered(),
        rlimits=sys.platform != "win32",
    )


def landlock_abi() -> int | None:
    """The version of Landlock; None: the kernel has none, or it is switched off."""
    if sys.platform != "linux":
        return None
    libc = ctypes.CDLL(None, use_errno=True)
    version = libc.syscall(LANDLOCK_CREATE_RULESET, None, ctypes.c_size_t(0), ctypes.c_uint32(_ASK_VERSION))
    return version if version > 0 else None


def seccomp_is_offered() -> bool:
    """Whether the kernel takes filters of system calls, and we know its numbers."""
    if sys.platform != "linux" or sys.maxsize < 1 << 32 or (number := SECCOMP.get(os.uname().machine)) is None:
        return False
    action = ctypes.c_uint32(_ERRNO_ACTION)
    return bool(ctypes.CDLL(None).syscall(number, _ASK_ACTION, 0, ctypes.byref(action)) == 0)


def _netns_is_open() -> bool:
    if sys.platform != "linux" or not Path("/proc/self/ns/net").exists() or not Path("/proc/self/ns/user").exists():
        return False
    gates = [Path(gate) for gate in _USERNS_GATES]
    if any(gate.exists() and gate.read_text().strip() == "0" for gate in gates):
        return False
    apparmor = Path(_APPARMOR_GATE)
    return not (apparmor.exists() and apparmor.read_text().strip() == "1")
