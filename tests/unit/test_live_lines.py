"""What moves on a terminal keeps to its lines, however narrow that is."""

import pytest
from rich.console import Console

from telecine.apps.transcode.cli.transcode_progress import TranscodeFile, picture
from telecine.apps.transcode.videos.progress import Quality, TranscodeProgress

RUNGS = tuple(
    Quality(
        quality=f"{height}p",
        kind="video",
        status="in_progress",
        segments_total=1200,
        segments_completed=345,
        width=height * 16 // 9,
        height=height,
    )
    for height in (360, 720, 2160)
)


@pytest.mark.parametrize("width", [60, 80])
def test_each_quality_stays_on_its_line(width: int) -> None:
    file = TranscodeFile(
        "a film with rather a long name, as they come from cameras.mp4", 1234, "film-1", None, "continued"
    )
    state = TranscodeProgress(
        job_id=1234, status="processing", step="video", percent=42.0, qualities=RUNGS, eta=3_723_000, speed=0.53
    )
    screen = Console(width=width, color_system=None)
    with screen.capture() as drawn:
        screen.print(picture(file, state))

    lines = drawn.get().splitlines()
    first = [line.split()[0] for line in lines]

    assert first == ["a", "360p", "720p", "2160p", "all", "0.53×"]
    assert max(map(len, lines)) <= width
