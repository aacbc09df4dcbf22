"""The engine beside its model once more, through many more stories."""

import os
import subprocess
import sys
from pathlib import Path

STORIES = 600


def test_whatever_happens_the_database_is_as_the_model_says() -> None:
    environment = {**os.environ, "TELECINE_TEST_EXAMPLES": str(STORIES)}

    run = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "tests/contract/test_stateful.py"],
        cwd=Path(__file__).parents[1],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )

    assert run.returncode == 0, run.stdout[-5_000:]
