"""`make setup` says which step runs and what it costs: it takes minutes, and pip is silent."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.support.docs import ROOT

# Makes a copy of itself where a real one would make an environment.
PYTHON = """#!/bin/sh
case "$1 $2" in
    "--version ") echo "Python 3.12.0" ;;
    "-m venv") mkdir -p "$3/bin" && cp "$0" "$3/bin/python" ;;
esac
"""


@pytest.mark.skipif(shutil.which("make") is None, reason="there is no make here")
def test_setup_says_which_step_runs_and_how_much_it_fetches(tmp_path: Path) -> None:
    python = tmp_path / "python"
    python.write_text(PYTHON)
    python.chmod(0o755)
    command = ["make", "-C", ROOT, "--no-print-directory", "setup", f"VENV={tmp_path}/venv", f"PYTHON={python}"]

    environ = {
        name: value for name, value in os.environ.items() if not name.startswith("MAKE")
    }  # `make check` sets some

    first, second = (
        subprocess.run(command, capture_output=True, text=True, check=True, env=environ).stdout for _ in range(2)
    )

    lines = first.splitlines()
    locked = (ROOT / "requirements/dev.lock").read_text().splitlines()
    packages = sum(line[:1].isalpha() and "==" in line for line in locked)
    assert len(lines) == 3
    assert lines[0] == f"Setup 1 of 3: creating {tmp_path}/venv with Python 3.12.0"
    assert lines[1].startswith(f"Setup 2 of 3: installing {packages} locked packages: about ")
    assert "to fetch" in lines[1]
    assert lines[2] == "Setup 3 of 3: installing Telecine itself"
    assert "Setup" not in second, "what is there is not made again"
