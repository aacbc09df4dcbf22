"""Sources in a folder and in a bucket."""

import asyncio
import hashlib
import os
import re
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

import obstore
import pytest
from obstore.store import S3Store

from telecine.errors import MediaRefused
from telecine.media.inputs import InputPolicy, LocalFile, download, hash_file, is_remote, open_input, reach
from tests.support.s3 import BUCKET, KEY, SECRET, Bucket, serve_s3

FILM = bytes(range(251)) * 20_000  # some five megabytes
HASH = hashlib.sha256(FILM).hexdigest()


def bring(source: str, path: Path, gate: InputPolicy) -> tuple[int, str]:
    fetched = asyncio.run(download(source, path, gate))
    assert path.stat().st_size == fetched.size
    return fetched.size, fetched.sha256


# -- Files --------------------------------------------------------------------------------------------


def test_a_local_file_is_hashed_where_it_lies(tmp_path: Path) -> None:
    (tmp_path / "film").write_bytes(FILM)
    said: list[tuple[float, float]] = []

    fetched = asyncio.run(hash_file(tmp_path / "film", lambda *at: said.append(at)))

    assert (fetched.size, fetched.sha256) == (len(FILM), HASH)
    assert said[-1] == (len(FILM), len(FILM))


def test_a_local_file_that_was_written_to_or_replaced_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "film"
    path.write_bytes(FILM)
    before = open_input(str(path), InputPolicy())
    assert isinstance(before, LocalFile)
    before.check_unchanged()

    (tmp_path / "other").write_bytes(FILM)
    os.utime(tmp_path / "other", ns=(before.mtime_ns, before.mtime_ns))
    (tmp_path / "other").rename(path)
    with pytest.raises(MediaRefused, match="was changed while it was read"):
        before.check_unchanged()

    again = LocalFile.at(path)
    with path.open("ab") as file:
        file.write(b"more")
    with pytest.raises(MediaRefused, match="was changed while it was read"):
        again.check_unchanged()


def test_what_is_no_plain_file_is_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")

    for name, sentence in (("pipe", "not a plain file"), (".", "not a plain file"), ("none", "No such file")):
        with pytest.raises(MediaRefused, match=sentence):
            open_input(str(tmp_path / name), InputPolicy())


def test_a_path_is_local_and_an_address_is_not() -> None:
    assert [is_remote(source) for source in ("film.mkv", "/a/b", "C:\\film", "a:b")] == [False] * 4
    assert [is_remote(source) for source in ("http://x/y", "s3://a/b", "FTP://x")] == [True] * 3
    with pytest.raises(MediaRefused, match="ftp:// is no place for a source"):
        open_input("FTP://example.com/film", InputPolicy())


# -- Buckets ------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def bucket(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bucket]:
    with serve_s3(tmp_path_factory.mktemp("s3")) as bucket:
        yield bucket


def reaching(bucket: Bucket, secret: str = SECRET) -> InputPolicy:
    opened = partial(
        S3Store.from_url,
        endpoint=bucket.endpoint,
        region="us-east-1",
        access_key_id=KEY,
        secret_access_key=secret,
        client_options={"allow_http": True},
        retry_config={"max_retries": 0},
    )
    return InputPolicy(bucket=opened, pause_seconds=0)


def put(bucket: Bucket, key: str) -> None:
    gate = reaching(bucket)
    assert gate.bucket is not None
    obstore.put(gate.bucket(f"s3://{BUCKET}"), key, FILM)


def test_a_film_in_a_bucket_comes_whole_with_its_hash(bucket: Bucket, tmp_path: Path) -> None:
    put(bucket, "a film? #1.mkv")
    source = "s3://films/a film? #1.mkv"

    assert asyncio.run(reach(source, reaching(bucket))) == len(FILM)
    assert bring(source, tmp_path / "film", reaching(bucket)) == (len(FILM), HASH)


def test_too_large_a_film_in_a_bucket_is_refused(bucket: Bucket, tmp_path: Path) -> None:
    put(bucket, "film.mkv")
    narrow = replace(reaching(bucket), most_bytes=1_000_000)

    with pytest.raises(MediaRefused, match=r"has 5\.0 MB, and at most 1\.0 MB are taken"):
        bring("s3://films/film.mkv", tmp_path / "film", narrow)


@pytest.mark.parametrize(
    ("source", "sentence"),
    [
        ("s3://films/none.mkv", "s3://films/none.mkv is not there; check its name"),
        ("s3://films", "names no object; give s3://bucket/key"),
        ("s3:///film.mkv", "names no object; give s3://bucket/key"),
    ],
)
def test_what_is_not_in_the_bucket_is_refused(source: str, sentence: str, bucket: Bucket, tmp_path: Path) -> None:
    with pytest.raises(MediaRefused, match=re.escape(sentence)) as refused:
        bring(source, tmp_path / "film", reaching(bucket))

    assert refused.value.code == "source_missing"


def test_a_wrong_key_to_a_bucket_is_refused(bucket: Bucket, tmp_path: Path) -> None:
    put(bucket, "film.mkv")

    with pytest.raises(MediaRefused, match="may not be read; allow it to the worker's S3 key"):
        bring("s3://films/film.mkv", tmp_path / "film", reaching(bucket, secret="wrong"))


def test_without_access_to_s3_its_sources_are_refused() -> None:
    with pytest.raises(MediaRefused, match="no access to S3 is set up"):
        open_input("s3://films/film.mkv", InputPolicy())
