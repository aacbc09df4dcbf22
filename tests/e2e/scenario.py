"""One day of Telecine from the outside: everything is asked for over HTTP, as people and programs do it.

    with closing(Day(site, folder, film)) as day:
        day.play()

A `Site` says what stands behind the addresses: the scenario knows neither the database nor where the bytes are, but
for two looks behind the scenes at the end.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from tests.api.live_server import mirrored
from tests.api.sse_client import Ear, Heard
from tests.e2e.player_client import View, view
from tests.e2e.test_webhooks import in_python as is_genuine
from tests.fault.server_processes import Outpost, wait_for
from tests.media.transcode_env import SMALL
from tests.support.webhook_receiver import Receiver

PATIENCE = 120.0
FRAMES = 85
VIDEOS, UPLOADS = "/api/v1/videos", "/api/v1/uploads"
ENDS = ("job.completed", "job.failed", "job.cancelled")


@dataclass(frozen=True)
class Site:
    """Servers on one database, a receiver of letters, and where the bytes of videos lie."""

    posts: list[Outpost]
    receiver: Receiver
    bytes_in: Path
    redis: str  # what health says of it
    first_link: str

    @property
    def first(self) -> Outpost:
        return self.posts[0]

    @property
    def last(self) -> Outpost:
        return self.posts[-1]


class Day:
    """Ada sends a film, watches it, changes her mind, and deletes it; an administrator looks on."""

    def __init__(self, site: Site, folder: Path, film: Path) -> None:
        self.site = site
        self.folder = folder
        self.film = film
        self.admin = _client(site.first, **{"X-Telecine": "1"})
        self.nobody = _client(site.first)
        self.key = ""
        self.ada = self.nobody
        self.letter_key = ""
        self.video = ""
        self.job = 0

    def play(self) -> None:
        self.log_in_by_a_link()
        self.make_keys()
        self.ask_for_letters()
        self.upload()
        asyncio.run(self.follow())
        first = self.watch(1)
        self.get_a_letter(1)
        self.make_one_quality_anew(first)
        self.roll_back(first)
        self.look_at_the_server()
        self.delete(first)
        self.log_out()

    def close(self) -> None:
        for client in (self.admin, self.ada, self.nobody):
            client.close()

    # -- who is there -------------------------------------------------------------------------------------------------

    def log_in_by_a_link(self) -> None:
        """The link that the server printed works once, and only when its button is pressed."""
        link = self.site.first_link
        assert self.nobody.get("/api/v1/me").status_code == 401
        for _ in range(2):
            assert self.admin.get(link).status_code == 200
        assert self.admin.post(link).status_code == 303
        assert self.nobody.post(link).status_code == 401
        assert self.admin.get("/api/v1/me").json()["scope"] == "admin"

    def make_keys(self) -> None:
        """One for Ada, which is not an administrator's; one for the worker, in a file that only it reads."""
        made = self.admin.post("/api/v1/keys", json={"scope": "owner", "owner": "ada", "name": "laptop"})
        assert made.status_code == 201, made.text
        self.key = made.json()["key"]
        self.ada = _client(self.site.first, Authorization=f"Bearer {self.key}")
        assert self.ada.get("/api/v1/me").json() == {"owner": "ada", "scope": "owner", "name": "laptop"}
        assert self.ada.get("/api/v1/workers").status_code == 403
        worker = self.admin.post("/api/worker/register", json={"name": "attic"})
        path = self.site.last.folder / "attic.key"
        path.touch(mode=0o600)
        path.write_text(worker.json()["key"])

    def ask_for_letters(self) -> None:
        made = self.ada.post("/api/v1/webhooks", json={"url": self.site.receiver.url("/ada")})
        assert made.status_code == 201, made.text
        self.letter_key = made.json()["key"]

    # -- a film comes in ----------------------------------------------------------------------------------------------

    def upload(self) -> None:
        """By tus, in several pieces, with tuspy."""
        wishes = {name: str(value) for name, value in SMALL.items() if name != "ladder"}
        how = {
            "endpoint": f"{self.site.first.url}{UPLOADS}", "key": self.key, "file": str(self.film), "retries": 3,
            "memory": str(self.folder / "tus.json"), "chunk": 16 << 10,
            "metadata": {
                "filename": self.film.name, "title": "Ada's film", **wishes, "poster": "true",
                "ladder": json.dumps(SMALL["ladder"]),
            },
        }  # fmt: skip
        command = [sys.executable, "-m", "tests.api.tus_client", json.dumps(how)]
        ran = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=False)
        said = [json.loads(line) for line in ran.stdout.splitlines()]
        assert ran.returncode == 0, ran.stderr
        assert len(said) > 3, "it came in one piece"
        done = self._until(self.ada, said[-1]["done"], lambda told: told["state"] != "checking")
        assert (done["state"], done["error"]) == ("done", None)
        assert done["sha256"] == hashlib.sha256(self.film.read_bytes()).hexdigest()
        self.video, self.job = done["video"], done["job"]

    async def follow(self) -> None:
        """From the first event on; the line breaks after the first task, and another server goes on from there."""
        first = await Ear.open(self.site.first.port, f"after=0&subject=video:{self.video}", key=self.key)
        self.site.last.work("attic", slots=2)
        heard = await first.until(lambda one: one.kind == "task.done", PATIENCE)
        first.cut()
        second = await Ear.open(self.site.last.port, f"subject=video:{self.video}", key=self.key, last_id=first.last_id)
        heard += await second.until(lambda one: one.kind in ENDS, PATIENCE)
        heard += await second.until(lambda one: one.kind == "video.completed", PATIENCE)
        second.cut()

        told = [one.data["seq"] for one in heard if _is_history(one)]
        history = await self._history()
        assert told == [one["seq"] for one in history], "an event was missed or came twice"
        kinds = [one["kind"] for one in history]
        assert (kinds[0], kinds[-1]) == ("job.created", "job.completed")

    async def _history(self) -> list[dict[str, Any]]:
        """All events of the job, as one who asks afterwards gets them."""
        ear = await Ear.open(self.site.last.port, f"after=0&follow=false&job={self.job}", key=self.key)
        history = [one.data for one in await ear.rest() if _is_history(one)]
        ear.cut()
        return history

    # -- watching -----------------------------------------------------------------------------------------------------

    def watch(self, version: int) -> View:
        """By the signed link alone, from every server: each list, each piece, each frame."""
        shown = self._until(self.ada, f"{VIDEOS}/{self.video}", lambda told: told["version"] == version)
        assert shown["status"] == "ready"
        seen = []
        for post in self.site.posts:
            copy = self.folder / f"copy-{time.monotonic_ns()}"
            with _client(post) as stranger:
                master = mirrored(stranger, shown["playback"]["master"], copy)
                assert stranger.get(f"/media/v/{self.video}/master.m3u8").status_code == 401
                seen.append(view(stranger, copy, master))
        assert all(one == seen[0] for one in seen)
        assert seen[0].frames == {"90p": list(range(FRAMES)), "180p": list(range(FRAMES))}
        assert seen[0].faults == []
        return seen[0]

    def get_a_letter(self, count: int) -> None:
        """Signed for Ada, one for each job that has ended, however many servers send them."""
        letters = self.site.receiver.wait_for(count, "/ada")
        assert len({one.id for one in letters}) == count
        assert all(is_genuine(one.headers, one.body, self.letter_key) for one in letters)
        assert not is_genuine(letters[-1].headers, letters[-1].body + b" ", self.letter_key)
        assert letters[-1].json["type"] == "job.completed"
        assert letters[-1].json["data"]["job"]["subject"] == {"kind": "video", "id": self.video}

    # -- another version ----------------------------------------------------------------------------------------------

    def make_one_quality_anew(self, first: View) -> None:
        """The old version plays until the new one is whole; what was not asked for is taken over."""
        worker = self.site.last.workers["attic"]
        worker.send_signal(signal.SIGSTOP)  # so that the old version is watched while the new one is not there
        wanted = {"qualities": ["180p"], "wishes": {"preset": "veryfast"}}
        begun = self.ada.post(f"{VIDEOS}/{self.video}/retranscode", json=wanted)
        assert begun.status_code == 202, begun.text
        meanwhile = self.ada.get(f"{VIDEOS}/{self.video}").json()
        assert (meanwhile["status"], meanwhile["version"]) == ("ready", 1)
        assert meanwhile["open_job"]["id"] == begun.json()["job_id"] != self.job
        assert meanwhile["beside"].startswith("re-transcod")
        assert self.watch(1) == first
        worker.send_signal(signal.SIGCONT)
        second = self.watch(2)
        assert second.pieces["90p"] == first.pieces["90p"]
        assert second.pieces["audio-1"] == first.pieces["audio-1"]
        assert not set(second.pieces["180p"]) & set(first.pieces["180p"])
        self.get_a_letter(2)

    def roll_back(self, first: View) -> None:
        answer = self.ada.post(f"{VIDEOS}/{self.video}/rollback")
        assert (answer.status_code, answer.json()["version"]) == (200, 1)
        assert self.watch(1) == first

    # -- the operator -------------------------------------------------------------------------------------------------

    def look_at_the_server(self) -> None:
        for post in self.site.posts:
            with _client(post) as here:
                brief = self._until(here, "/health", lambda told: told["pending_jobs"] == 0)
                full = here.get("/api/health").json()
                assert brief == {
                    "status": "ok", "reasons": [], "database": "ok", "redis": self.site.redis, "active_workers": 1,
                    "pending_jobs": 0,
                }  # fmt: skip
                assert {room["status"] for room in full["storage"].values()} == {"ok"}
                wait_for(lambda here=here: _counted(here, 2), "two completed jobs are counted")
        workers = self.admin.get("/api/v1/workers").json()["items"]
        assert [one["name"] for one in workers] == ["attic"]

    def delete(self, first: View) -> None:
        """Nobody sees it at once; the bytes go with the next look of housekeeping."""
        link = self.ada.get(f"{VIDEOS}/{self.video}").json()["playback"]["master"]
        assert len(self._files()) > len(first.pieces)
        assert self.ada.delete(f"{VIDEOS}/{self.video}").status_code == 204
        for post in self.site.posts:
            with _client(post) as stranger:
                assert stranger.get(link).status_code == 404
        assert self.ada.get(f"{VIDEOS}/{self.video}").status_code == 404
        assert self.ada.get(VIDEOS).json()["items"] == []
        wait_for(lambda: not self._files(), "the bytes of the video are gone")
        waiting = [path for post in self.site.posts for path in (post.folder / "server" / "uploads").rglob("*")]
        assert [path for path in waiting if path.is_file() and path.stat().st_size] == []

    def _files(self) -> list[str]:
        # Not `rglob`, which stumbles over folders that go meanwhile.
        return [name for _, _, names in os.walk(self.site.bytes_in) for name in names]

    def log_out(self) -> None:
        assert self.admin.post("/api/v1/logout").status_code == 204
        assert self.admin.get("/api/v1/me").status_code == 401
        assert len(self.site.receiver.at("/ada")) == 2, "a letter came twice"

    def _until(self, client: httpx.Client, address: str, check: Callable[[Any], bool]) -> Any:
        def asked() -> Any:
            told = client.get(address).raise_for_status().json()
            return told if check(told) else None

        return wait_for(asked, f"{address} says what it should", within=PATIENCE)


def _client(post: Outpost, **headers: str) -> httpx.Client:
    return httpx.Client(base_url=post.url, headers=headers, timeout=60)


def _is_history(one: Heard) -> bool:
    return one.id is not None and one.kind is not None and one.kind.startswith(("job.", "stage.", "task."))


def _counted(client: httpx.Client, jobs: int) -> bool:
    """Whether the metrics know of so many completed jobs."""
    text = client.get("/metrics").raise_for_status().text
    wanted = f'telecine_jobs_completed_total{{flow="transcode",outcome="completed"}} {jobs:.1f}'
    return wanted in text.splitlines() and "telecine_server_able 1.0" in text.splitlines()
