"""Real clients against a real server: tuspy and tus-js-client; either side killed in the middle, the film whole."""

import asyncio
import base64
import hashlib
import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from telecine.engine.accounts.keys import Keys, Scope
from telecine.wiring import open_engine
from tests.api.raw_requests import BYTES, TUS, a_film
from tests.browser.rig import HERE, NODE, installed
from tests.fault.server_processes import Outpost, outpost, wait_for

MIB = 1 << 20
SIZE = 48 * MIB  # so much that nobody is done before he can be killed
CHUNK = MIB // 4


@pytest.fixture(scope="module")
def film(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A real one, made longer by a box that says nothing."""
    path = tmp_path_factory.mktemp("film") / "Long Film.mp4"
    content = a_film(path.parent)
    empty = SIZE - len(content)
    path.write_bytes(content + empty.to_bytes(4, "big") + b"free" + bytes(range(256)) * (empty // 256) + b"!" * 300)
    with path.open("r+b") as file:
        file.truncate(SIZE)
    return path


@pytest.fixture(scope="module")
def post(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Outpost]:
    """A server that lives; those that are killed have a test of their own."""
    folder = tmp_path_factory.mktemp("post")
    with outpost(folder, f"sqlite:///{folder}/telecine.db", upload_reserve_bytes=0) as post:
        post.serve()
        yield post


@contextmanager
def mortal(request: pytest.FixtureRequest, database: str) -> Iterator[Outpost]:
    url = request.getfixturevalue("sqlite_url")
    if database == "postgres":
        request.getfixturevalue("postgres_store")  # makes the tables
        url = request.getfixturevalue("postgres_schema_url")
    with outpost(request.getfixturevalue("tmp_path"), url, upload_reserve_bytes=0) as post:
        post.serve()
        yield post


async def _key(post: Outpost) -> str:
    async with open_engine(post.settings) as parts:
        return (await Keys(parts.store, parts.world).issue(Scope.OWNER, owner="ada")).text


class Client:
    """A client's process, and what it says."""

    def __init__(self, kind: str, post: Outpost, key: str, film: Path, *, retries: int = 60, **said: str) -> None:
        self.memory = post.folder / f"{kind}.json"
        how = {
            "endpoint": f"{post.url}/api/v1/uploads", "key": key, "file": str(film), "memory": str(self.memory),
            "chunk": CHUNK, "metadata": {"filename": film.name, **said}, "retries": retries, "home": None,
        }  # fmt: skip
        if kind == "tuspy":
            self.command = [sys.executable, "-m", "tests.api.tus_client", json.dumps(how)]
        else:
            self.command = [str(NODE), str(HERE / "upload.mjs"), json.dumps({**how, "home": str(installed())})]
        self.process: subprocess.Popen[str] | None = None
        self.out = post.folder / f"{kind}.out"

    def start(self) -> None:
        with self.out.open("w") as out:
            self.process = subprocess.Popen(self.command, stdout=out, stderr=subprocess.STDOUT, text=True)

    def said(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.out.read_text().splitlines() if line.startswith("{")]

    def wait_for(self, word: str, least: int = 0) -> Any:
        def found() -> Any:
            assert self.process is not None
            ended = self.process.poll() is not None
            values = [line[word] for line in self.said() if word in line and (not least or line[word] >= least)]
            assert values or not ended, self.out.read_text()
            return values

        return wait_for(found, f"the client says {word!r}")[0]

    def kill(self) -> None:
        if self.process is not None and self.process.poll() is None:
            self.process.kill()
            self.process.wait()


def shown(post: Outpost, key: str, place: str) -> dict[str, Any]:
    headers = {"Authorization": f"Bearer {key}"}
    found: dict[str, Any] = httpx.get(httpx.URL(post.url).join(place), headers=headers, timeout=30).json()
    return found


def assert_whole(post: Outpost, key: str, place: str, film: Path) -> None:
    upload = shown(post, key, place)
    digest = hashlib.sha256(film.read_bytes()).hexdigest()
    assert (upload["state"], upload["sha256"]) == ("done", digest), upload
    stored = post.folder / "artifacts" / "uploads" / upload["id"] / "source"
    assert hashlib.sha256(stored.read_bytes()).hexdigest() == digest
    headers = {"Authorization": f"Bearer {key}"}
    job = httpx.get(f"{post.url}/api/v1/jobs/{upload['job']}", headers=headers, timeout=30).json()
    assert list(job["subject"]) == ["video", upload["video"]]


@pytest.mark.parametrize(("kind", "database"), [("tuspy", "sqlite"), ("tus-js-client", "postgres")])
def test_the_server_and_then_the_client_are_killed_in_the_middle_and_the_film_is_whole(
    request: pytest.FixtureRequest, film: Path, kind: str, database: str
) -> None:
    with mortal(request, database) as post:
        key = asyncio.run(_key(post))
        client = Client(kind, post, key, film, ladder="web")
        try:
            client.start()
            client.wait_for("sent", SIZE // 8)
            killed(post)
            client.wait_for("sent", SIZE // 2)
            client.kill()

            client.start()

            assert client.wait_for("resumed") is True
            place = client.wait_for("done")
            sent = [line["sent"] for line in client.said() if "sent" in line]
            assert min(sent) > SIZE // 2, "it went on, not began anew"
        finally:
            client.kill()
        assert_whole(post, key, place, film)


def killed(post: Outpost) -> None:
    """With no chance to say a word; another one takes its place."""
    assert post.server is not None
    post.server.kill()
    post.server.wait()
    post.serve()


def test_clients_hear_that_a_quota_is_used_up_and_do_not_try_again(tmp_path: Path, film: Path) -> None:
    with outpost(tmp_path, f"sqlite:///{tmp_path}/telecine.db", upload_quota_bytes=SIZE - 1) as post:
        post.serve(log_format="json")
        key = asyncio.run(_key(post))
        for kind in ("tuspy", "tus-js-client"):
            client = Client(kind, post, key, film)
            try:
                client.start()
                assert client.process is not None
                assert client.process.wait(60) == 1
            finally:
                client.kill()
            assert "413" in client.out.read_text()
            assert not [line for line in client.said() if "sent" in line]
        asked = [line for line in (post.folder / "server.log").read_text().splitlines() if "uploads 413" in line]

    assert len(asked) == 2, "each has asked once"


@pytest.mark.parametrize("kind", ["tuspy", "tus-js-client"])
def test_a_client_hears_why_its_file_is_refused(post: Outpost, tmp_path: Path, kind: str) -> None:
    key = asyncio.run(_key(post))
    text = tmp_path / "notes.mp4"
    text.write_bytes(b"these are notes, and no film\n" * 1000)
    client = Client(kind, post, key, text, retries=0)
    try:
        client.start()
        assert client.process is not None
        assert client.process.wait(60) != 0
    finally:
        client.kill()

    assert "422" in client.out.read_text()


def test_a_server_that_dies_in_the_middle_of_a_request_loses_only_what_was_not_counted(
    request: pytest.FixtureRequest, film: Path
) -> None:
    content = film.read_bytes()
    with mortal(request, "sqlite") as post:
        key = asyncio.run(_key(post))
        with httpx.Client(base_url=post.url, headers={"Authorization": f"Bearer {key}"}, timeout=60) as client:
            place = client.post("/api/v1/uploads", headers={**TUS, "Upload-Length": str(SIZE)}).headers["location"]
            client.patch(place, headers={**BYTES, "Upload-Offset": "0"}, content=content[:MIB])

            def half_a_body() -> Iterator[bytes]:
                yield content[MIB : 6 * MIB]
                file = post.folder / "server" / "uploads" / place.rsplit("/", 1)[1]
                wait_for(lambda: file.stat().st_size >= 4 * MIB, "bytes are on the disk")
                killed(post)
                yield content[6 * MIB :]

            with pytest.raises(httpx.TransportError):
                client.patch(place, headers={**BYTES, "Upload-Offset": str(MIB)}, content=half_a_body())
            offset = int(client.head(place, headers=TUS).headers["upload-offset"])
            digest = base64.b64encode(hashlib.sha256(content[offset:]).digest()).decode()
            rest = {**BYTES, "Upload-Offset": str(offset), "Upload-Checksum": f"sha256 {digest}"}
            last = client.patch(place, headers=rest, content=content[offset:])

        assert MIB <= offset < SIZE
        assert last.status_code == 204, last.text
        assert_whole(post, key, place, film)


def test_curl_sends_a_film_in_one_line(post: Outpost, film: Path) -> None:
    key = asyncio.run(_key(post))
    address = f"{post.url}/api/v1/uploads/film.mp4?ladder=web&audio=none"

    ran = subprocess.run(
        ["curl", "-sS", "-T", str(film), "-H", f"Authorization: Bearer {key}", address],
        capture_output=True, text=True, timeout=60, check=True,
    )  # fmt: skip

    assert_whole(post, key, f"/api/v1/uploads/{json.loads(ran.stdout)['id']}", film)


def test_a_client_that_is_cut_off_keeps_what_it_sent(post: Outpost, film: Path) -> None:
    key = asyncio.run(_key(post))
    content = film.read_bytes()

    def breaks_off() -> Iterator[bytes]:
        yield content[: 3 * MIB]
        file = post.folder / "server" / "uploads" / place.rsplit("/", 1)[1]
        wait_for(lambda: file.exists() and file.stat().st_size >= 2 * MIB, "bytes are on the disk")
        raise ConnectionResetError("the network is gone")

    with httpx.Client(base_url=post.url, headers={"Authorization": f"Bearer {key}"}, timeout=60) as client:
        place = client.post("/api/v1/uploads", headers={**TUS, "Upload-Length": str(SIZE)}).headers["location"]
        with pytest.raises(ConnectionResetError):
            client.patch(place, headers={**BYTES, "Upload-Offset": "0"}, content=breaks_off())

        def counted() -> int:
            return int(client.head(place, headers=TUS).headers["upload-offset"])

        wait_for(lambda: counted() >= 2 * MIB, "what came was counted")
        answer = client.patch(place, headers={**BYTES, "Upload-Offset": str(counted())}, content=content[counted() :])

    assert answer.status_code == 204, answer.text
    assert_whole(post, key, place, film)
