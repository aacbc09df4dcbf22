"""Pieces that lie in a bucket: read in ranges, never as a whole, and refused in time if they are not there."""

from pathlib import Path

from tests.api.in_process_server import Front
from tests.api.video_fixtures import piece_of, published
from tests.support.s3 import serve_s3

LARGE = bytes(range(251)) * 40_000  # ten megabytes: three reads


async def test_pieces_come_out_of_a_bucket_whole_and_in_ranges(front: Front, tmp_path: Path) -> None:
    with serve_s3(tmp_path) as bucket:
        front.house.artifacts = bucket.artifacts()
        piece = await piece_of(front, await published(front, "film-1", data=LARGE), LARGE)
        address = f"/media/v/film-1/{piece.path}"

        whole = await front.ada.get(address)
        part = await front.ada.get(address, headers={"Range": "bytes=4000000-8999999"})
        tail = await front.ada.get(address, headers={"Range": "bytes=-7"})
        head = await front.ada.head(address)
        await front.house.artifacts.delete(f"{piece.job_id}/video@1/0/1/720p/00000.m4s")
        gone = await front.ada.get(address)

    assert (whole.status_code, whole.content == LARGE) == (200, True)
    assert (part.status_code, part.content == LARGE[4_000_000:9_000_000]) == (206, True)
    assert tail.content == LARGE[-7:]
    assert head.headers["content-length"] == str(len(LARGE))
    assert gone.status_code == 404


async def test_a_bucket_that_does_not_answer_is_no_fault_of_the_video(front: Front, tmp_path: Path) -> None:
    with serve_s3(tmp_path) as bucket:
        front.house.artifacts = bucket.artifacts()
        piece = await piece_of(front, await published(front, "film-1"))
    (tmp_path / "buckets").rename(tmp_path / "moved")
    with serve_s3(tmp_path) as bucket:
        front.house.artifacts = bucket.artifacts()
        (tmp_path / "buckets" / "films").rmdir()

        answer = await front.ada.get(f"/media/v/film-1/{piece.path}")

    assert answer.status_code in (404, 503)
    assert answer.headers["content-type"] == "application/problem+json"
