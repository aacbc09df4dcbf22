"""Artifacts: stored whole under a key of their own, with the size and hash of what was stored."""

import asyncio
import hashlib
from pathlib import Path

import pytest

from telecine.artifacts import Artifacts, key_of
from telecine.errors import BadSpec, NotFound


def test_what_was_put_comes_back_with_its_size_and_hash(tmp_path: Path) -> None:
    async def play() -> None:
        content = bytes(range(256)) * 20_000
        (tmp_path / "made").write_bytes(content)
        artifacts = Artifacts(str(tmp_path / "store"))

        stored = await artifacts.put("7/encode@1/3/2/made", tmp_path / "made")
        fetched = await artifacts.get("7/encode@1/3/2/made", tmp_path / "back")

        assert stored == fetched
        assert stored.size == len(content)
        assert stored.sha256 == hashlib.sha256(content).hexdigest()
        assert (tmp_path / "back").read_bytes() == content
        assert (tmp_path / "store/7/encode@1/3/2/made").read_bytes() == content
        assert await artifacts.stat("7/encode@1/3/2/made") == len(content)

    asyncio.run(play())


def test_an_empty_file_is_an_artifact_too(tmp_path: Path) -> None:
    async def play() -> None:
        (tmp_path / "empty").touch()
        artifacts = Artifacts(f"file://{tmp_path}/store")

        stored = await artifacts.put("a/b", tmp_path / "empty")

        assert (stored.size, await artifacts.stat("a/b")) == (0, 0)

    asyncio.run(play())


def test_what_is_gone_is_not_found_and_may_be_deleted_again(tmp_path: Path) -> None:
    async def play() -> None:
        (tmp_path / "made").write_text("made")
        artifacts = Artifacts(str(tmp_path / "store"))
        await artifacts.put("a/b", tmp_path / "made")

        await artifacts.delete("a/b")
        await artifacts.delete("a/b")

        with pytest.raises(NotFound):
            await artifacts.stat("a/b")
        with pytest.raises(NotFound):
            await artifacts.get("a/b", tmp_path / "back")

    asyncio.run(play())


@pytest.mark.parametrize("name", ["", "..", "../up", "a//b", "/root", "a/../b", "back\\slash"])
def test_a_name_that_leaves_its_folder_is_refused(name: str) -> None:
    with pytest.raises(BadSpec):
        key_of(1, "encode@1", 0, 1, name=name)


def test_the_key_names_job_stage_version_position_token_and_file() -> None:
    assert key_of(7, "encode@2", 3, 4, name="out/a.m4s") == "7/encode@2/3/4/out/a.m4s"
