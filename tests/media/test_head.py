"""Which frames at the beginning of a film can be decoded."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from sys import getrefcount

import av
from av.video.frame import VideoFrame

from telecine.media.child.source.head import undecodable_head
from tests.media.make_video import Film, Shot, shoot

X264 = {"x264-params": "keyint=25:min-keyint=25:scenecut=0:bframes=2:b-adapt=0"}
FILM = Film(format="matroska", shots=(Shot(count=50, size=(128, 72)),), options=X264, voices=())


def test_frames_before_the_first_keyframe_that_can_be_decoded_are_kept(tmp_path: Path) -> None:
    """MPEG-2 may begin with B-frames that are shown before the I-frame and need nothing else."""
    with av.open(str(shoot(tmp_path / "film.mkv", FILM))) as film:
        frames = list(film.decode(video=0))
    times = [frame.pts for frame in frames if frame.pts is not None]

    kept = undecodable_head(iter(frames), times[:2], times[2], is_cut=False)
    lost = undecodable_head(iter(frames[1:]), times[:2], times[2], is_cut=False)
    cut = undecodable_head(iter(frames[20:]), times[20:25], times[25], is_cut=True)

    assert (kept, lost, cut) == (set(), {times[0]}, set(times[20:25]))


def test_frames_before_the_first_keyframe_are_counted_not_kept(tmp_path: Path) -> None:
    """Decoded frames of a long group would fill the memory, and a recording without times would never end."""
    with av.open(str(shoot(tmp_path / "film.mkv", FILM))) as film:
        frames = list(film.decode(video=0))
    times = [frame.pts for frame in frames if frame.pts is not None]
    before = [getrefcount(frame) for frame in frames]
    held: list[int] = []

    def told() -> Iterator[VideoFrame]:
        for number in range(10_000):
            yield frames[number % 40]
            held.append(sum(getrefcount(one) - count for one, count in zip(frames, before, strict=True)))

    assert undecodable_head(told(), times[:45], times[45], is_cut=False) == set(times[40:45])
    assert 45 < len(held) < 150
    assert max(held) <= min(held) + 1
