"""Names of artifacts: what is taken can be stored everywhere, the rest is refused with a sentence."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from telecine.artifacts import Artifacts, key_of
from telecine.errors import BadSpec
from tests.contract.test_artifacts import a_file
from tests.support.s3 import Bucket, serve_s3


@pytest.fixture(scope="module")
def bucket(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bucket]:
    with serve_s3(tmp_path_factory.mktemp("s3")) as bucket:
        yield bucket


ODD = ["a\x01b", "a\nb", "a\x7f", "a\x9b", "\ud800", "x" * 241, "é" * 121, "a/" * 400 + "b", "a#1", "a#1/b"]
LONGEST = ["x" * 240, "é" * 120, "/".join(["d" * 230] * 3), "a%2Fb #x ~*|<>?:.", "東京.m4s", "a#", "...", ".a"]


@pytest.mark.parametrize("name", ODD)
def test_a_name_that_a_store_cannot_hold_is_refused_with_a_sentence(name: str) -> None:
    with pytest.raises(BadSpec, match=r"^artifact name ") as refused:
        key_of(1, "encode@1", 0, 1, name=name)

    assert len(str(refused.value)) < 400
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("name", LONGEST)
def test_every_name_that_is_taken_can_be_stored_everywhere(tmp_path: Path, bucket: Bucket, name: str) -> None:
    async def play() -> None:
        key = key_of(1 << 53, "encode@1", 1_000_000, 1_000_000, name=name)
        for artifacts in (Artifacts(str(tmp_path / "store")), bucket.artifacts()):
            stored = await artifacts.put(key, a_file(tmp_path))

            assert await artifacts.digest(key) == stored
            assert await artifacts.under(str(1 << 53)) == [key]
            await artifacts.delete(key)

    asyncio.run(play())
