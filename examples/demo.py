"""`make demo`: a film becomes a stream; half-way its process is killed with -9, started again, and goes on.

Everything is real: the film is encoded, the kill is a kill -9, and what was recorded before it is not made again.
"""

import argparse
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

from rich.console import Console

ROOT = Path(__file__).parents[1]
FOLDER = Path(".demo")
FILM = FOLDER / "sample.mp4"
STREAM = FOLDER / "stream"
PATIENCE = 300.0
console = Console(highlight=False)


def telecine(*arguments: str) -> list[str]:
    return [sys.executable, "-c", "from telecine.cli import main; main()", *arguments]


def environment() -> dict[str, str]:
    plain = {name: value for name, value in os.environ.items() if not name.startswith("TELECINE_")}
    return plain | {
        "TELECINE_DATABASE_URL": f"sqlite:///{FOLDER}/telecine.db",
        "TELECINE_ARTIFACTS_URL": f"{FOLDER}/artifacts",
        "TELECINE_SCRATCH": f"{FOLDER}/scratch",
    }


def recorded() -> set[Path]:
    """The segments of video that are safe."""
    return set(FOLDER.glob("artifacts/*/video@*/*/*/*/*.m4s"))


def transcode_and_kill(least: int) -> set[Path]:
    """Start, wait for so many segments, kill -9; answers what was recorded by then."""
    command = telecine("transcode", str(FILM), "-o", str(STREAM))
    with (FOLDER / "first.log").open("wb") as log:
        running = subprocess.Popen(command, env=environment(), stdout=log, stderr=log)
    deadline = time.monotonic() + PATIENCE
    while len(recorded()) < least and running.poll() is None and time.monotonic() < deadline:
        time.sleep(0.05)
    running.send_signal(signal.SIGKILL)
    running.wait()
    return recorded()


def wishes() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m examples.demo", description=__doc__)
    parser.add_argument("--height", type=int, default=720, help="how high the picture is; a small one takes less time")
    parser.add_argument(
        "--kill-at", type=int, default=6, help="how many segments of video are recorded before the kill"
    )
    return parser.parse_args()


def main() -> int:
    wanted = wishes()
    os.chdir(ROOT)
    shutil.rmtree(FOLDER, ignore_errors=True)
    FOLDER.mkdir()
    console.print(f"$ telecine sample {FILM}")
    sample = telecine("sample", str(FILM), "--height", str(wanted.height))
    subprocess.run(sample, env=environment(), timeout=PATIENCE, check=True)
    console.print(f"$ telecine transcode {FILM} -o {STREAM}")
    safe = transcode_and_kill(wanted.kill_at)
    console.print(
        f"[bold]kill -9[/] in the middle: {len(safe)} segments of video were recorded. The same command again:"
    )
    console.print(f"$ telecine transcode {FILM} -o {STREAM}")
    ended = subprocess.run(
        telecine("transcode", str(FILM), "-o", str(STREAM)), env=environment(), timeout=PATIENCE, check=False
    )
    if ended.returncode:
        return ended.returncode
    kept = sum(path.exists() for path in safe)
    made = len({(path.parent.name, path.name) for path in recorded()})
    console.print(
        f"\n{kept} of the {made} segments are those from before the kill; none of them was made again.", soft_wrap=True
    )
    console.print(f"The stream: [bold]{STREAM}/master.m3u8[/]   poster and sprites beside it")
    program = Path(sys.executable).parent / "telecine"
    shown = program.relative_to(ROOT) if program.is_relative_to(ROOT) else program
    url = f"sqlite:///{FOLDER}/telecine.db"
    console.print(f"What happened, stage by stage:  {shown} job 1 --database {url}", soft_wrap=True)
    console.print("A film of your own:             telecine transcode film.mkv -o film/", soft_wrap=True)
    console.print("A flow of your own:             examples/flows.py, docs/tutorial.md", soft_wrap=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
