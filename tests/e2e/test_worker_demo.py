"""The worked example works: it is the first thing that a stranger runs."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_demo_survives_the_kill_that_it_shows_and_draws_the_whole_picture() -> None:
    demo = subprocess.run(
        [sys.executable, "-m", "examples.demo"], cwd=ROOT, capture_output=True, text=True, timeout=60, check=False
    )

    assert demo.returncode == 0, demo.stdout + demo.stderr
    assert "kill -9 ann" in demo.stdout
    assert "Job 1 is completed: 8 tasks done, each once; 1 attempt lost." in demo.stdout
    assert demo.stderr == ""
