"""Sources and segments in a bucket: asked for seldom, many at once, and not at all while they are still here."""

import asyncio
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from telecine import Bench, Done, Flow
from telecine.apps.transcode.options import TranscodeOptions
from telecine.apps.transcode.plan import SourceLocation
from telecine.apps.transcode.spec import parse
from telecine.apps.transcode.stages.encode import recorded
from telecine.apps.transcode.stages.source import find_origin
from telecine.apps.transcode.stages.source_feed import AHEAD, DOWNLOADED, ReadAhead, opened
from telecine.media.inputs import InputPolicy
from tests.media.transcode_env import Theatre, play
from tests.support.s3 import KEY, SECRET, Bucket, serve_s3
from tests.support.throttled_proxy import slow_line
from tests.support.web_server import Request, serve

MIB = 1 << 20
FILM = bytes(range(256)) * (20 * MIB // 256)


# -- Read on -----------------------------------------------------------------------------------------


class Far:
    """Bytes far away, and what was asked of them."""

    def __init__(self) -> None:
        self.asked: list[tuple[int, int]] = []

    async def read(self, start: int, length: int) -> bytes:
        self.asked.append((start, length))
        return FILM[start : start + length]


def asked_for(*starts: int) -> tuple[Far, bool]:
    """Whoever asks for a MiB at each of these, and whether he gets what is there."""
    far = Far()

    async def ask() -> bool:
        ahead = ReadAhead(far.read)
        return all([await ahead(start, MIB) == FILM[start : start + MIB] for start in starts])

    return far, asyncio.run(ask())


def test_who_reads_on_asks_seldom() -> None:
    far, same = asked_for(*range(0, len(FILM), MIB))

    assert same
    assert far.asked == [(start, AHEAD) for start in range(0, len(FILM), AHEAD)]


def test_who_reads_at_two_places_in_turn_asks_seldom_too() -> None:
    both = [start for pair in zip(range(8), range(12, 20), strict=True) for start in pair]

    far, same = asked_for(*(start * MIB for start in both))

    assert same
    assert far.asked == [(0, AHEAD), (12 * MIB, MIB), (13 * MIB, AHEAD)]


def test_who_jumps_about_gets_only_what_he_asks_for() -> None:
    starts = [19 * MIB, 3 * MIB, 11 * MIB, 7 * MIB]

    far, same = asked_for(*starts)

    assert same
    assert far.asked == [(start, MIB) for start in starts]


# -- Still here --------------------------------------------------------------------------------------


def in_bucket(bucket: Bucket) -> dict[str, Any]:
    return {
        "artifacts_url": bucket.url, "s3_endpoint": bucket.endpoint, "s3_access_key_id": KEY,
        "s3_secret_access_key": SECRET,
    }  # fmt: skip


Work = Callable[[Bench], Any]


def a_flow(work: Work, attempts: int = 1, **about: Any) -> Flow:
    flow = Flow("look")
    flow.stage("fetch", run="inline", attempts=attempts, **about)(work)
    return flow


async def told_by(house: Theatre, spec: dict[str, Any]) -> Any:
    job = await house.ended((await house.parts.engine.jobs.submit("look", spec)).job_id)
    assert job.status == "completed", job.error
    [result] = job.results
    return result.value


@pytest.mark.parametrize("place", ["folder", "bucket"])
def test_a_film_that_was_downloaded_just_now_is_read_from_the_disk_and_lies_there_once(
    tmp_path: Path, place: str
) -> None:
    async def look(bench: Bench) -> Done:
        options = TranscodeOptions(gate=InputPolicy(private=("127.0.0.1",)), shared=place == "bucket")
        origin = await find_origin(bench, parse(bench.spec), options)
        async with opened(bench, origin) as reading:
            return Done(result=[list(reading), (bench.scratch / DOWNLOADED).exists()])

    async def story(house: Theatre) -> None:
        assert await told_by(house, {"source": site.url("/film")}) == [["files"], place == "bucket"]

    with serve() as site, serve_s3(tmp_path) as bucket:
        site.pages["/film"] = film
        play(story, tmp_path / "house", flows=[a_flow(look)], **(in_bucket(bucket) if place == "bucket" else {}))


def film(request: Request) -> None:
    request.say(200, FILM[:MIB], ETag='"one"')


def test_a_child_that_puts_a_link_in_place_of_the_download_is_not_followed(tmp_path: Path) -> None:
    async def look(bench: Bench) -> Done:
        path = bench.scratch / "made"
        path.write_bytes(b"film")
        await bench.keep("source", path)
        (tmp_path / "secret").write_bytes(b"pass")
        (bench.scratch / DOWNLOADED).symlink_to(tmp_path / "secret")
        async with opened(bench, SourceLocation(artifact="source", size=4, sha256="")) as reading:
            return Done(result=[list(reading), (await reading["source"](0, 4)).decode()])

    async def story(house: Theatre) -> None:
        assert await told_by(house, {}) == [["source"], "film"]

    with serve_s3(tmp_path) as bucket:
        play(story, tmp_path / "house", flows=[a_flow(look)], **in_bucket(bucket))


# -- Many at once ------------------------------------------------------------------------------------


def test_a_film_of_many_segments_is_looked_through_before_it_stalls(tmp_path: Path) -> None:
    many = 120

    async def look(bench: Bench) -> Done:
        if bench.attempt == 1:
            path = bench.scratch / "piece"
            path.write_bytes(b"piece")
            keep = [partial(bench.keep, f"720p/{n:05d}.m4s", path, rung="720p", number=n) for n in range(many)]
            await asyncio.gather(*(one() for one in keep))
            raise RuntimeError("fall over")
        found = await recorded(bench, TranscodeOptions())
        return Done(result=len(found))

    async def story(house: Theatre) -> None:
        assert await told_by(house, {}) == many

    with serve_s3(tmp_path) as bucket, slow_line(bucket, up=1000 * MIB, down=1000 * MIB, delay=0.1) as far:
        flow = a_flow(look, attempts=2, backoff=0.01, stall=6.0)
        play(story, tmp_path / "house", flows=[flow], **in_bucket(far))
