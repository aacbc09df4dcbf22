"""The worked example works: it is the first thing that a stranger runs."""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_demo_survives_the_kill_that_it_shows_and_publishes_the_whole_film() -> None:
    small = ("--height", "360", "--kill-at", "2")  # one quality, and half of its segments
    demo = subprocess.run(
        [sys.executable, "-m", "examples.demo", *small],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )

    assert demo.returncode == 0, demo.stdout + demo.stderr
    assert "kill -9 in the middle" in demo.stdout
    assert re.search(r"[23] of the 4 segments are those from before the kill", demo.stdout)
    assert (ROOT / ".demo/stream/master.m3u8").read_text().startswith("#EXTM3U")
    assert demo.stderr == ""
