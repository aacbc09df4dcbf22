"""python -m tests.lanes: every test but the unit tests, in lanes side by side, each a pytest of its own.

Some tests keep the cores busy, most wait for processes and leases: together they take little longer than the longest
lane. What each lane said is shown when all have ended; the exit code is 0 only if all of them passed.
"""

import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).parents[1]
LOGS = Path(sys.prefix) / "lanes"
# Every folder of tests is in one of them: a test compares.
LANES = {
    "films": ["tests/media"],
    "engine": ["tests/contract", "tests/fault"],
    "server": ["tests/api", "tests/e2e"],
}
TOLD_EVERY = 30.0


def main() -> int:
    LOGS.mkdir(exist_ok=True)
    running = {name: _started(name, places) for name, places in LANES.items()}
    begun = told = time.monotonic()
    while any(process.poll() is None for process in running.values()):
        time.sleep(0.2)
        if time.monotonic() - told > TOLD_EVERY:
            told = time.monotonic()
            print(f"{told - begun:4.0f} s  {', '.join(f'{name} {_share(name)}' for name in running)}", flush=True)
    for name in running:
        print(f"\n{name}: {' '.join(LANES[name])}\n{_log(name).read_text()}", flush=True)
    return int(any(process.returncode for process in running.values()))


def _started(name: str, places: list[str]) -> subprocess.Popen[bytes]:
    with _log(name).open("wb") as log:
        return subprocess.Popen([sys.executable, "-m", "pytest", *places], cwd=ROOT, stdout=log, stderr=log)


def _log(name: str) -> Path:
    return LOGS / f"{name}.log"


def _share(name: str) -> str:
    """How far a lane is, as pytest tells it."""
    lines = _log(name).read_text().splitlines()
    *_, last = ["0 %", *(line.rpartition("[")[2] for line in lines if line.endswith("%]"))]
    return last.strip(" ]")


if __name__ == "__main__":
    sys.exit(main())
