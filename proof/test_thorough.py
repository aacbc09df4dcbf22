"""All that `make test` leaves out of its own files: every case, and the longer stories.

Files that try more of the same within a test (they ask for THOROUGH) are run whole.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FILES = sorted(
    str(path.relative_to(ROOT))
    for path in ROOT.glob("tests/*/test_*.py")
    if "tests.support.thorough import" in path.read_text()
)


@pytest.mark.parametrize("file", FILES)
def test_what_the_short_run_leaves_out_holds(file: str) -> None:
    chosen = [] if "import THOROUGH" in (ROOT / file).read_text() else ["-m", "thorough"]

    run = subprocess.run(
        [sys.executable, "-m", "pytest", *chosen, file],
        cwd=ROOT,
        env={**os.environ, "TELECINE_TEST_THOROUGH": "1"},
        capture_output=True,
        text=True,
        check=False,
    )

    assert run.returncode == 0, run.stdout[-5_000:]


def test_something_is_left_out_of_the_short_run() -> None:
    assert FILES
