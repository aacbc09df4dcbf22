"""python -m tests.lanes: every test but the unit tests, each folder by a pytest of its own, three at a time.

Some tests keep the cores busy, most wait for processes and leases: side by side they take much less time. What each
said is shown when all have ended; the exit code is 0 only if all of them passed.
"""

import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).parents[1]
LOGS = Path(sys.prefix) / "lanes"
# The longest first. Every folder of tests is here: a test compares.
FOLDERS = ["tests/media", "tests/contract", "tests/fault", "tests/api", "tests/e2e"]
AT_ONCE = 3
TOLD_EVERY = 30.0


def main(folders: list[str]) -> int:
    LOGS.mkdir(exist_ok=True)
    waiting, started = list(folders), dict[str, subprocess.Popen[bytes]]()
    begun = told = time.monotonic()
    while waiting or any(process.poll() is None for process in started.values()):
        if waiting and sum(process.poll() is None for process in started.values()) < AT_ONCE:
            folder = waiting.pop(0)
            started[folder] = _started(folder)
        time.sleep(0.2)
        if time.monotonic() - told > TOLD_EVERY:
            told = time.monotonic()
            print(f"{told - begun:4.0f} s  {', '.join(f'{name} {_share(name)}' for name in started)}", flush=True)
    for name in started:
        print(f"\n{name}\n{_log(name).read_text()}", flush=True)
    return int(any(process.returncode for process in started.values()))


def _started(folder: str) -> subprocess.Popen[bytes]:
    with _log(folder).open("wb") as log:
        return subprocess.Popen([sys.executable, "-m", "pytest", folder], cwd=ROOT, stdout=log, stderr=log)


def _log(folder: str) -> Path:
    return LOGS / f"{Path(folder).name}.log"


def _share(folder: str) -> str:
    """How far it is, as pytest tells it."""
    lines = _log(folder).read_text().splitlines()
    *_, last = ["0%", *(line.rpartition("[")[2] for line in lines if line.endswith("%]"))]
    return last.strip(" ]")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:] or FOLDERS))
