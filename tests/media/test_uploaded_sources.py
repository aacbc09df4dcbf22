"""A source that was uploaded before: read where it lies, in a folder or a bucket; neither copied nor hashed again."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from telecine.apps.transcode.spec import digest, parse
from telecine.errors import BadSpec
from telecine.wiring import open_artifacts
from tests.media.test_far_sources import in_bucket
from tests.media.transcode_env import Theatre, numbers_of, play, small
from tests.support.s3 import serve_s3

Source = Callable[[str], Path]
ID = "0123456789abcdef" * 2


async def uploaded(house: Theatre, film: Path, **wishes: Any) -> dict[str, Any]:
    stored = await open_artifacts(house.parts.settings).put(f"uploads/{ID}/source", film)
    return small(f"upload://{ID}", sha256=stored.sha256, size=stored.size, name="My film.mp4", **wishes)


@pytest.mark.parametrize("place", ["folder", "bucket"])
def test_an_uploaded_film_is_transcoded_from_where_it_lies(tmp_path: Path, source: Source, place: str) -> None:
    async def story(house: Theatre) -> None:
        job = await house.completed(await uploaded(house, source("mp4-h264")))

        [planned] = [one.value for one in job.results if one.stage == "plan"]
        assert planned["source"]["format"] == "mov", "its head is looked at before it is fetched"
        assert job.subject is not None
        assert job.subject[1].startswith("my-film-")
        assert "source" not in [one.kept.name for one in await house.views.kept(job.id, "fetch")], "nothing was copied"
        assert [len(frames) for frames in numbers_of(await house.exported(job.id)).values()] == [85, 85]

    with serve_s3(tmp_path) as bucket:
        play(story, tmp_path / "house", **(in_bucket(bucket) if place == "bucket" else {}))


@pytest.mark.parametrize("place", ["folder", "bucket"])
def test_an_upload_whose_bytes_are_gone_is_refused_at_once(tmp_path: Path, place: str) -> None:
    async def story(house: Theatre) -> None:
        job = await house.made(small(f"upload://{ID}", sha256="0" * 64, size=7))

        assert job.error is not None
        assert (job.error["code"], job.error["stage"]) == ("source_missing", "validate")
        assert "upload it again" in job.error["message"]
        assert [outcome for _, outcome in await house.attempts(job.id)] == ["failed"], "another try would not help"

    with serve_s3(tmp_path) as bucket:
        play(story, tmp_path / "house", **(in_bucket(bucket) if place == "bucket" else {}))


def test_a_job_for_an_upload_says_what_it_is(tmp_path: Path) -> None:
    async def story(house: Theatre) -> None:
        job = await house.made(small(f"upload://{ID}"))

        assert job.error is not None
        assert "must say its size and SHA-256" in job.error["message"]

    play(story, tmp_path)


@pytest.mark.parametrize(
    "place", ["upload://", "upload://../../etc/passwd", f"upload://{ID}/x", f"upload://{ID.upper()}"]
)
def test_an_upload_is_named_by_its_id_alone(place: str) -> None:
    with pytest.raises(BadSpec, match="32 hexadecimal digits"):
        parse({"source": place})


def test_where_a_film_came_from_and_its_name_make_no_other_job() -> None:
    one = parse({"source": f"upload://{ID}", "sha256": "0" * 64, "size": 7, "name": "film"})

    assert digest(one) == digest(parse({"source": "/films/film.mkv", "sha256": "0" * 64}))
