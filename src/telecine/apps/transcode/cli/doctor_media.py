"""What the doctor says about media: libraries, the walls around a media child, encoders. Real children, which are gone
when it has spoken."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from telecine.apps.transcode.encoder_probe import encodes, said_to
from telecine.cli.commands.doctor_disk import DoctorCheck
from telecine.errors import ChildFailed, TelecineError
from telecine.media.child.sandbox.canary import Canary
from telecine.media.ladders.encoder_families import FAMILIES
from telecine.media.ladders.ladder_spec import check_ladders, read_ladder
from telecine.media.orders import ChildLimits
from telecine.media.sandbox_layers import offered

if TYPE_CHECKING:
    from telecine.settings import Settings
    from telecine.world import World

CANARY_MEMORY = 1 << 30
# What must be refused, by the wall that refuses it, and what a person calls it.
WALLS: tuple[tuple[str, str, tuple[str, ...]], ...] = (
    ("landlock", "other files", ("read", "write", "list")),
    ("tcp", "TCP", ("tcp",)),
    ("netns", "UDP", ("udp",)),
    ("seccomp", "Unix sockets", ("unix",)),
    ("seccomp", "other programs", ("process",)),
    ("seccomp", "modes, owners, times and attributes of files", ("chmod", "chown", "utime", "xattr")),
    ("seccomp", "limits, priority and signals of its parent", ("prlimit", "renice", "reschedule", "signal")),
    ("seccomp", "shared memory", ("shared_memory",)),
    ("seccomp", "another root", ("chroot",)),
    ("rlimits", "more memory", ("memory",)),
)


async def examine_media(settings: Settings, world: World) -> AsyncIterator[DoctorCheck]:
    yield _ladder(settings)
    yield _libraries()
    with TemporaryDirectory(prefix="telecine-doctor-") as folder:
        for check in await _sandbox(Path(folder), world):
            yield check
        yield await _encoders(world)


def _ladder(settings: Settings) -> DoctorCheck:
    try:
        check_ladders(settings.ladder, settings.ladders)
    except TelecineError as error:
        return DoctorCheck("ladder", "wrong", str(error))
    names = ", ".join(step.name or "source" for step in read_ladder(settings.ladder, settings.ladders))
    return DoctorCheck("ladder", "ok", f"{settings.ladder}: {names}")


def _libraries() -> DoctorCheck:
    try:
        import av
    except ImportError as error:
        return DoctorCheck("FFmpeg", "wrong", f"PyAV cannot be loaded: {error}")
    known = ", ".join(f"{name} {'.'.join(map(str, version))}" for name, version in sorted(av.library_versions.items()))
    return DoctorCheck("FFmpeg", "ok", f"PyAV {av.__version__}: {known}")


# -- the sandbox -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class SandboxFindings:
    """Which walls a child says it stands behind, and what became of what it tried: None is a success."""

    walls: dict[str, Any]
    tried: dict[str, str | None]


async def _sandbox(folder: Path, world: World) -> list[DoctorCheck]:
    try:
        with _outside(folder) as order:
            found = SandboxFindings(*await _canary(order, world))
    except ChildFailed as error:
        return [DoctorCheck("sandbox", "wrong", f"no media child can work here: {error}")]
    return list(_verdicts(found))


def _verdicts(found: SandboxFindings) -> Iterator[DoctorCheck]:
    """What is there and bites is fine; what is absent is a warning; a wall that lets something through is a fault."""
    if found.tried.get("scratch") is not None:
        yield DoctorCheck("sandbox", "wrong", f"a media child cannot write its own folder: {found.tried['scratch']}")
    bites: list[str] = []
    leaks: list[str] = []
    for wall, about, tries in WALLS:
        if not found.walls.get(wall):
            continue
        through = [one for one in tries if found.tried.get(one, "") is None]
        if through:
            leaks.append(f"{about} ({wall}: {', '.join(through)})")
        else:
            bites.append(f"{about} ({wall})")
    if leaks:
        yield DoctorCheck("sandbox", "wrong", f"stands and does not bite: {', '.join(leaks)}")
    if bites:
        abi = f"Landlock {found.walls['landlock']}; " if found.walls.get("landlock") else ""
        yield DoctorCheck("sandbox", "ok", f"{abi}a media child was refused {', '.join(bites)}")
    for words in _absent(found.walls):
        yield DoctorCheck("sandbox", "warning", words)


def _absent(walls: dict[str, Any]) -> list[str]:
    """What the child did not get; the machine may have promised a network namespace that it then refused."""
    lacking = list(offered().missing)
    if not walls.get("netns") and not any("network namespace" in words for words in lacking):
        lacking.append("no network namespace, though the settings of this kernel allow one: a child could send UDP")
    if not walls.get("seccomp") and not any("seccomp" in words for words in lacking):
        lacking.append("no seccomp, though this kernel has it: a child could connect to Unix sockets")
    return lacking


@contextmanager
def _outside(folder: Path) -> Iterator[Canary]:
    """Things that a child must not reach: a file, a folder, two ports on the loopback, a socket with a path."""
    beyond = folder / "outside"
    beyond.mkdir()
    (beyond / "secret").write_text("not for you")
    with (
        socket.create_server(("127.0.0.1", 0)) as tcp,
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as udp,
        socket.socket(socket.AF_UNIX) as unix,
    ):
        udp.bind(("127.0.0.1", 0))
        unix.bind(str(beyond / "socket"))
        unix.listen()
        yield Canary(
            read=str(beyond / "secret"),
            write=str(beyond / "mark"),
            tcp=tcp.getsockname()[1],
            udp=udp.getsockname()[1],
            unix=str(beyond / "socket"),
            limits=ChildLimits(memory=CANARY_MEMORY),
        )


async def _canary(order: Canary, world: World) -> tuple[dict[str, Any], dict[str, str | None]]:
    said = await said_to(order, world)
    walls: dict[str, Any] = next((one["sandbox"] for one in said if one.get("sandbox")), {})
    return walls, said[-1]["done"]["tried"]


# -- encoders ----------------------------------------------------------------------------------------


async def _encoders(world: World) -> DoctorCheck:
    """Which families really encode here: one frame each, in a child."""
    import av

    known = [name for name, family in FAMILIES.items() if family.codec in av.codecs_available]
    tries = await asyncio.gather(*(encodes(FAMILIES[name], world) for name in known))
    works = {name for name, encodes in zip(known, tries, strict=True) if encodes}
    labels = {name: f" (label {family.label})" if family.label else "" for name, family in FAMILIES.items()}
    there = [f"{name}{labels[name]}" for name in FAMILIES if name in works]
    absent = [name for name in FAMILIES if name not in works]
    rest = f"; not on this machine: {', '.join(absent)}" if absent else ""
    if "x264" not in works:
        return DoctorCheck("encoders", "wrong", f"x264, which every job can fall back to, does not encode{rest}")
    return DoctorCheck("encoders", "ok", f"{', '.join(there)}{rest}")
