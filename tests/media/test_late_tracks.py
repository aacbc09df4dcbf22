"""A track that begins later than a demuxer looks is found all the same, at its time."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

from tests.media.make_video import Film, Shot, Voice, ffmpeg, shoot
from tests.media.test_probe import probed
from tests.media.test_sound_extent import heard_in, transcoded

LATE = Fraction(9)  # a demuxer looks at 8 s, or 8 MiB
LONG = Film(
    format="mpegts",
    codec="mpeg2video",
    rate=Fraction(25),
    shots=(Shot(count=300, size=(160, 90)),),
    voices=(Voice(start=LATE, length=Fraction(5, 2)),),
)
ONE_PIECE = {"segment_seconds": 6.0, "gop_seconds": 2.0}


def test_a_track_that_is_announced_and_begins_later_is_heard(tmp_path: Path) -> None:
    path = shoot(tmp_path / "film.ts", LONG)
    assert probed(path).unclear

    out, plan = transcoded(path, tmp_path, **ONE_PIECE)

    [sound] = heard_in(out)
    assert set(sound) == {9, 10, 11}
    assert max(abs(at - second) for second, at in sound.items()) < 0.012
    assert plan["warnings"] == []


def unannounced(folder: Path) -> Path:
    """A program stream whose sound neither its head nor its end gives away: it is there from second 9 to 11."""
    parts = []
    for start, length, voices in ((0, 9, ()), (9, 2, (Voice(codec="mp2"),)), (11, 1, ())):
        film = Film(
            format="matroska", codec="mpeg2video", shots=(Shot(count=25 * length, size=(160, 90)),), voices=voices
        )
        part = shoot(folder / f"{start}.mkv", film)
        ffmpeg("-i", part, "-c", "copy", "-output_ts_offset", start, "-f", "vob", folder / f"{start}.mpg")
        parts.append((folder / f"{start}.mpg").read_bytes())
    padding = b"\x00\x00\x01\xbe" + (2042).to_bytes(2, "big") + b"\xff" * 2042
    path = folder / "film.mpg"
    path.write_bytes(parts[0] + parts[1] + padding * 300 + parts[2])
    return path


def test_a_track_that_nobody_announced_is_noticed_and_heard(tmp_path: Path) -> None:
    path = unannounced(tmp_path)
    before = probed(path)
    assert (before.sounds, before.unclear) == ((), False)

    out, plan = transcoded(path, tmp_path, damaged="warn", **ONE_PIECE)

    [sound] = heard_in(out)
    assert set(sound) == {0, 1}
    assert 0.9 < sound[1] - sound[0] < 1.1
    assert 8 < sound[0] < 9.5  # the muxer moves the clock of each part, and jumps are spliced
    assert not any("left out" in warning for warning in plan["warnings"])
