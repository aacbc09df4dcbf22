"""Artifacts, in a folder and in a bucket: stored whole under a key, with the size and hash of what was stored."""

import asyncio
import hashlib
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

import pytest

from telecine.artifacts import PART, WINDOW, Artifacts, S3Access, Stored, key_of, part_of
from telecine.errors import ArtifactError, BadSpec, HandlerStopped, NotFound
from tests.support.s3 import KEY, Bucket, serve_s3

KEY_OF_A_FILE = "7/encode@1/3/2/a b#1.m4s"


@pytest.fixture(scope="module")
def bucket(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bucket]:
    with serve_s3(tmp_path_factory.mktemp("s3")) as bucket:
        yield bucket


@pytest.fixture(params=["folder", "s3"])
def artifacts(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Artifacts]:
    if request.param == "folder":
        yield Artifacts(str(tmp_path / "store"))
        return
    bucket: Bucket = request.getfixturevalue("bucket")
    place = Artifacts(f"{bucket.url}/{tmp_path.name}", bucket.access)
    yield place


def a_file(folder: Path, content: bytes = b"made") -> Path:
    path = folder / "made"
    path.write_bytes(content)
    return path


def of(content: bytes) -> Stored:
    return Stored(len(content), hashlib.sha256(content).hexdigest())


@pytest.mark.parametrize("size", [0, 1, 5_000_000, 2 * PART + 1], ids=["empty", "one byte", "small", "in parts"])
def test_what_was_put_comes_back_with_its_size_and_hash(artifacts: Artifacts, tmp_path: Path, size: int) -> None:
    async def play() -> None:
        content = (bytes(range(251)) * (size // 251 + 1))[:size]

        stored = await artifacts.put(KEY_OF_A_FILE, a_file(tmp_path, content))
        fetched = await artifacts.get(KEY_OF_A_FILE, tmp_path / "back")

        assert stored == fetched == await artifacts.digest(KEY_OF_A_FILE) == of(content)
        assert (tmp_path / "back").read_bytes() == content
        assert await artifacts.stat(KEY_OF_A_FILE) == size

    asyncio.run(play())


def test_a_part_can_be_read_by_itself(artifacts: Artifacts, tmp_path: Path) -> None:
    async def play() -> None:
        content = bytes(range(256)) * 5_000
        await artifacts.put("a/b", a_file(tmp_path, content))

        assert await artifacts.read("a/b") == content
        assert await artifacts.read("a/b", 700_000, 10) == content[700_000:700_010]
        assert await artifacts.read("a/b", 1_000) == content[1_000:]
        assert await artifacts.read("a/b", len(content) - 3, 10, size=len(content)) == content[-3:]
        assert await artifacts.read("a/b", len(content), 10) == b""
        assert await artifacts.read("a/b", 5, 0) == b""
        with pytest.raises(BadSpec):
            await artifacts.read("a/b", -1, 10)

    asyncio.run(play())


def test_what_is_gone_is_not_found_and_may_be_deleted_again(artifacts: Artifacts, tmp_path: Path) -> None:
    async def play() -> None:
        await artifacts.put("a/b", a_file(tmp_path))

        await artifacts.delete("a/b")
        await artifacts.delete("a/b")

        looks: list[Callable[[], Awaitable[object]]] = [
            lambda: artifacts.stat("a/b"),
            lambda: artifacts.get("a/b", tmp_path / "back"),
            lambda: artifacts.read("a/b"),
            lambda: artifacts.digest("a/b"),
        ]
        for look in looks:
            with pytest.raises(NotFound, match="there is no artifact 'a/b'"):
                await look()

    asyncio.run(play())


def test_a_listing_shows_all_below_a_folder_and_nothing_beside_it(artifacts: Artifacts, tmp_path: Path) -> None:
    async def play() -> None:
        keys = ["7/a@1/0/1/x", "7/b@1/0/1/deep/y", "70/a@1/0/1/x"]
        for key in keys:
            await artifacts.put(key, a_file(tmp_path))

        before = sorted(await artifacts.under("7/"))
        failed = await artifacts.delete_many([*before, "7/never/was"])

        assert before == keys[:2]
        assert failed == {}
        assert await artifacts.under("7/") == []
        assert await artifacts.under("70/") == keys[2:]
        assert await artifacts.under("8/") == []

    asyncio.run(play())


def test_a_put_that_fails_half_way_leaves_nothing(artifacts: Artifacts, tmp_path: Path) -> None:
    """The disk fails while the source is read."""

    async def play() -> None:
        path = a_file(tmp_path, bytes(PART + 1))
        lost = _Vanishing(path)

        with pytest.raises(ArtifactError, match="could not be stored"):
            await artifacts.put("a/b", lost)
        with pytest.raises(NotFound):
            await artifacts.stat("a/b")

    asyncio.run(play())


class _Vanishing(type(Path())):  # type: ignore[misc]
    """A file whose disk fails after the first look."""

    def open(self, *args: object, **options: object) -> object:
        return _Failing()


class _Failing:
    def __init__(self) -> None:
        self.left = 6

    def __enter__(self) -> "_Failing":
        return self

    def __exit__(self, *_: object) -> None:
        return None

    def read(self, size: int) -> bytes:
        self.left -= 1
        if not self.left:
            raise OSError(5, "Input/output error")
        return bytes(size)


def test_a_folder_knows_where_its_files_are_and_a_bucket_does_not(tmp_path: Path, bucket: Bucket) -> None:
    async def play() -> None:
        folder = Artifacts(f"file://{tmp_path}/store")
        await folder.put("a/b", a_file(tmp_path))

        found = folder.path("a/b")

        assert found == tmp_path / "store" / "a" / "b"
        assert found.read_bytes() == b"made"
        assert bucket.artifacts().path("a/b") is None

    asyncio.run(play())


def test_a_folder_shows_what_a_crash_left_half_written_and_keeps_no_empty_folders(tmp_path: Path) -> None:
    async def play() -> None:
        folder = Artifacts(str(tmp_path / "store"))
        await folder.put("7/a@1/0/1/x", a_file(tmp_path))
        (tmp_path / "store/7/a@1/0/1/y#1").write_bytes(b"ha")

        found = await folder.under("7/")
        await folder.delete_many(found)

        assert found == ["7/a@1/0/1/x", "7/a@1/0/1/y#1"]
        assert list((tmp_path / "store").iterdir()) == []

    asyncio.run(play())


def test_a_bucket_is_where_the_server_says(tmp_path: Path, bucket: Bucket) -> None:
    async def play() -> None:
        await bucket.artifacts().put("7/x", a_file(tmp_path))

        assert (bucket.folder / "work/7/x").read_bytes() == b"made"

    asyncio.run(play())


@pytest.mark.parametrize("name", ["", "..", "../up", "a//b", "/root", "a/../b", "back\\slash"])
def test_a_name_that_leaves_its_folder_is_refused(name: str) -> None:
    with pytest.raises(BadSpec):
        key_of(1, "encode@1", 0, 1, name=name)


def test_the_key_names_job_stage_version_position_token_and_file() -> None:
    assert key_of(7, "encode@2", 3, 4, name="out/a.m4s") == "7/encode@2/3/4/out/a.m4s"


def test_errors_of_a_bucket_are_one_sentence_without_the_secret(tmp_path: Path, bucket: Bucket) -> None:
    async def play() -> None:
        wrong = S3Access(endpoint=bucket.endpoint, access_key_id=KEY, secret_access_key="guessed")
        nobody = S3Access(endpoint="http://127.0.0.1:1", access_key_id=KEY, secret_access_key="guessed")
        path = a_file(tmp_path)
        places = [Artifacts(bucket.url, wrong), Artifacts("s3://nowhere", bucket.access), Artifacts(bucket.url, nobody)]

        said = []
        for place in places:
            with pytest.raises(ArtifactError) as refused:
                await place.put("a/b", path)
            said.append(str(refused.value))

        assert all(text.startswith("artifact 'a/b' could not be stored: ") for text in said)
        assert not any("\n" in text or "guessed" in text for text in said)
        assert "403" in said[0]
        assert "its bucket does not exist" in said[1]
        assert "guessed" not in repr(wrong)

    asyncio.run(play())


@pytest.mark.parametrize("place", ["s3://", "nonsense://x", "/dev/null/x"])
def test_a_place_that_cannot_be_is_refused_in_one_sentence(place: str) -> None:
    with pytest.raises(BadSpec, match=r"^artifacts cannot be stored there: [^\n]+$"):
        Artifacts(place)


# -- On their way ------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [5_000_000, 5 * PART + 1], ids=["small", "in parts"])
def test_it_is_heard_how_far_the_bytes_are(artifacts: Artifacts, tmp_path: Path, size: int) -> None:
    async def play() -> None:
        heard: dict[str, list[tuple[int, int]]] = {"put": [], "get": [], "digest": []}

        await artifacts.put("7/x", a_file(tmp_path, bytes(size)), lambda *far: heard["put"].append(far))
        await artifacts.get("7/x", tmp_path / "back", lambda *far: heard["get"].append(far))
        await artifacts.digest("7/x", lambda *far: heard["digest"].append(far))

        for far in heard.values():
            assert len(far) > 1
            assert far == sorted(far)
            assert far[-1] == (size, size)

    asyncio.run(play())


def test_what_is_ended_on_its_way_leaves_nothing(artifacts: Artifacts, tmp_path: Path) -> None:
    def enough(done: int, of: int) -> None:
        if done > of / 2:
            raise HandlerStopped("enough")

    async def play() -> None:
        path = a_file(tmp_path, bytes(5 * PART))

        with pytest.raises(HandlerStopped):
            await artifacts.put("7/x", path, enough)

        assert await artifacts.under("7/") == []

    asyncio.run(play())


def test_a_bucket_takes_all_parts_of_the_largest_file() -> None:
    sizes = [1, PART, 10 * PART, 78 << 30, 200 << 30, 5 << 40]

    parts = [part_of(size) for size in sizes]

    assert all(size / part <= 10_000 for size, part in zip(sizes, parts, strict=True))
    assert parts[:3] == [PART] * 3
    assert parts[-1] < 5 << 30


def test_a_large_file_comes_down_in_several_requests_where_a_server_gives_parts(tmp_path: Path) -> None:
    async def play() -> None:
        memory = Artifacts("memory:///")
        content = bytes(range(256)) * (WINDOW // 256 + 7)
        await memory.put("7/x", a_file(tmp_path, content))
        heard: list[tuple[int, int]] = []

        fetched = await memory.get("7/x", tmp_path / "back", lambda *far: heard.append(far))

        assert fetched == await memory.digest("7/x") == of(content)
        assert (tmp_path / "back").read_bytes() == content
        assert heard == [(WINDOW, len(content)), (len(content), len(content))]

    asyncio.run(play())
