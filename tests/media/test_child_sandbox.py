"""Each wall around a media child bites, or is reported as absent. Real listeners, a real child."""

from __future__ import annotations

import errno
import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from telecine.media import sandbox_layers
from telecine.media.child.sandbox.canary import Canary
from telecine.media.orders import ChildLimits
from telecine.media.plain_json import to_plain
from tests.media import child_driver

LIMIT = 1 << 30
SECCOMP_REFUSES = (
    *("chmod", "chown", "utime", "xattr", "prlimit", "renice", "reschedule", "signal", "shared_memory", "chroot"),
)


@dataclass(frozen=True)
class Report:
    """What the canary found, and which walls the child says it has."""

    walls: dict[str, Any]
    tried: dict[str, str | None]


@dataclass(frozen=True)
class Outside:
    """What a child must not reach."""

    tcp: socket.socket
    udp: socket.socket
    unix: socket.socket
    folder: Path

    @property
    def order(self) -> Canary:
        return Canary(
            read=str(self.folder / "secret"),
            write=str(self.folder / "mark"),
            tcp=self.tcp.getsockname()[1],
            udp=self.udp.getsockname()[1],
            unix=self.unix.getsockname(),
            limits=ChildLimits(memory=LIMIT),
        )


@pytest.fixture(scope="module")
def outside(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Outside]:
    folder = tmp_path_factory.mktemp("outside")
    (folder / "secret").write_text("do not read")
    with (
        socket.create_server(("127.0.0.1", 0)) as tcp,
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as udp,
        socket.socket(socket.AF_UNIX) as unix,
    ):
        udp.bind(("127.0.0.1", 0))
        udp.settimeout(0)
        unix.bind(str(folder / "socket"))
        unix.listen()
        yield Outside(tcp, udp, unix, folder)


@pytest.fixture(scope="module")
def report(started_in_earnest: None, outside: Outside, tmp_path_factory: pytest.TempPathFactory) -> Report:
    said = child_driver.run(outside.order, tmp_path_factory.mktemp("scratch"))
    return Report(walls=said.lines[0]["sandbox"], tried=said.done["tried"])


def stands(report: Report, wall: str) -> bool:
    """Whether the wall is there. One that is not must be told as absent, never be taken for one that held."""
    if report.walls[wall]:
        return True
    assert len(sandbox_layers.offered().missing) > 0, f"{wall} is absent, and nobody says so"
    return False


def has_attributes(folder: Path) -> bool:
    """Whether this file system has extended attributes for users."""
    probe = folder / "attributes"
    probe.touch()
    try:
        os.setxattr(probe, "user.telecine", b"mine")
    except OSError:
        return False
    return True


def test_the_canary_would_sing_without_walls(outside: Outside, tmp_path: Path) -> None:
    program = (
        "import json, sys; from pathlib import Path; from telecine.media.child import protocol\n"
        "from telecine.media.child.sandbox import canary\n"
        "from telecine.media.plain_json import from_plain\n"
        "order = from_plain(canary.Canary, json.loads(sys.argv[1]))\n"
        "session = protocol.ChildSession(protocol.StdoutChannel(), source=None, scratch=Path.cwd())\n"
        "print(json.dumps(canary.run(order, session)))"
    )
    order = json.dumps({**to_plain(outside.order), "limits": {"memory": None}})

    ran = subprocess.run(
        [sys.executable, "-c", program, order], cwd=tmp_path, capture_output=True, check=True, timeout=30
    )

    tried = json.loads(ran.stdout)["tried"]
    unlike = {"chroot"} if os.geteuid() else set()
    unlike |= set() if has_attributes(outside.folder) else {"xattr"}
    assert {name for name, refusal in tried.items() if refusal is None} >= set(SECCOMP_REFUSES) - unlike
    assert {name for name, refusal in tried.items() if refusal is None} >= {
        "read",
        "write",
        "list",
        "process",
        "tcp",
        "udp",
        "unix",
    }
    outside.tcp.accept()[0].close()
    outside.unix.accept()[0].close()
    assert outside.udp.recv(10) == b"out"


def test_its_own_folder_is_open(report: Report) -> None:
    assert report.tried["scratch"] is None


@pytest.mark.parametrize("name", ["read", "write", "list", "process"])
def test_landlock_shuts_the_file_system(report: Report, name: str) -> None:
    assert not stands(report, "landlock") or "Permission denied" in str(report.tried[name])


def test_tcp_is_refused(report: Report, outside: Outside) -> None:
    if not report.walls["tcp"] and not stands(report, "netns"):
        return
    outside.tcp.settimeout(0)

    assert report.tried["tcp"] is not None
    with pytest.raises(BlockingIOError):
        outside.tcp.accept()


def test_udp_is_refused(report: Report, outside: Outside) -> None:
    if not stands(report, "netns"):
        return

    assert report.tried["udp"] is not None
    with pytest.raises(BlockingIOError):
        outside.udp.recv(10)


def test_a_socket_that_has_a_path_is_refused(report: Report, outside: Outside) -> None:
    if not stands(report, "seccomp"):
        return
    outside.unix.settimeout(0)

    assert "Permission denied" in str(report.tried["unix"])
    with pytest.raises(BlockingIOError):
        outside.unix.accept()


@pytest.mark.parametrize("name", SECCOMP_REFUSES)
def test_what_landlock_does_not_cover_is_refused(report: Report, name: str) -> None:
    if not stands(report, "seccomp"):
        return

    assert f"[Errno {errno.EACCES}]" in str(report.tried[name])


def test_a_foreign_file_keeps_its_time_and_its_attributes(report: Report, outside: Outside) -> None:
    if not stands(report, "seccomp"):
        return
    secret = outside.folder / "secret"
    os.utime(secret, ns=(1, 1))
    had = has_attributes(outside.folder) and os.listxattr(secret)

    said = child_driver.run(outside.order, outside.folder.parent / "scratch-again")

    assert said.done["tried"]["utime"] is not None
    assert secret.stat().st_mtime_ns == 1
    assert (has_attributes(outside.folder) and os.listxattr(secret)) == had


def test_memory_ends_at_the_limit(report: Report) -> None:
    assert "as" in report.walls["rlimits"]
    assert str(report.tried["memory"]).startswith("MemoryError")


def test_a_file_cannot_grow_beyond_its_limit(started_in_earnest: None, outside: Outside, tmp_path: Path) -> None:
    order = replace(outside.order, limits=ChildLimits(file_bytes=2))

    said = child_driver.run(order, tmp_path)

    assert "File too large" in said.done["tried"]["scratch"]


def test_doctor_hears_what_a_child_will_find(report: Report) -> None:
    offered = sandbox_layers.offered()

    assert offered.landlock == report.walls["landlock"]
    assert offered.tcp == report.walls["tcp"]
    assert offered.netns == report.walls["netns"]
    assert offered.seccomp == report.walls["seccomp"]
    assert offered.rlimits


def test_what_is_missing_is_said_in_words() -> None:
    bare = sandbox_layers.SandboxLayers(landlock=None, tcp=False, netns=False, seccomp=False, rlimits=True)
    old = replace(bare, landlock=3, netns=True, seccomp=True)

    assert len(bare.missing) == 3
    assert old.missing == ("Landlock is too old for TCP rules",)
    assert sandbox_layers.SandboxLayers(landlock=7, tcp=True, netns=True, seccomp=True, rlimits=True).missing == ()


ALONE = """
import ctypes, json, os, socket, threading
from telecine.media.child.sandbox import landlock, seccomp

landlock.no_new_privileges()
waiting, made = threading.Event(), []
early = threading.Thread(target=lambda: waiting.wait(20) and made.append(refusal(socket.socketpair)))

def refusal(attempt):
    try:
        attempt()
    except OSError as error:
        return type(error).__name__

early.start()
stands = seccomp.restrict()
waiting.set()
early.join()
late = threading.Thread(target=made.append, args=("late",))
late.start()
late.join()
libc = ctypes.CDLL(None, use_errno=True)
attempts = {
    "socket": socket.socket,
    "socketpair": socket.socketpair,
    "fork": lambda: os.fork() or os._exit(0),
    "spawn": lambda: os.posix_spawn("/bin/true", ["true"], {}),
    "exec": lambda: os.execv("/bin/true", ["true"]),
}
refused = {name: refusal(attempt) for name, attempt in attempts.items()}
rings = libc.syscall(425, 1, None), ctypes.get_errno()
print(json.dumps({"stands": stands, "threads": made, "refused": refused, "rings": rings}))
"""


def test_seccomp_alone_refuses_sockets_and_processes_in_every_thread_but_not_threads() -> None:
    ran = subprocess.run([sys.executable, "-c", ALONE], capture_output=True, check=True, timeout=30)

    found = json.loads(ran.stdout)
    assert found["stands"] == sandbox_layers.offered().seccomp
    if not found["stands"]:
        return
    assert found["threads"] == ["PermissionError", "late"]
    assert set(found["refused"].values()) == {"PermissionError"}
    assert found["rings"] == [-1, errno.EACCES]
