"""Programs from the wings are processes like any other, and none outlives whoever asked for it."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fault.server_processes import wait_for
from tests.fault.worker_processes import lives
from tests.support.process_pool import Prompter

ROOT = Path(__file__).parents[2]


def tell() -> None:
    print(os.getpid(), Path.cwd(), os.environ.get("WORD"), *sys.argv[1:], flush=True)
    print("aside", file=sys.stderr)
    sys.exit(7)


def stay() -> None:
    print(os.getpid(), flush=True)
    time.sleep(600)


def ask_and_stay() -> None:
    """Ask for one that stays, and stay, too."""
    actor = Prompter("").enter(f"{__name__}:stay", out=Path("out"), log=Path("log"))
    Path("pids").write_text(f"{actor.pid} {actor._prompter._process.pid}")
    time.sleep(600)


@pytest.fixture(scope="module")
def prompter() -> Iterator[Prompter]:
    own = Prompter("")
    yield own
    own.end()


def test_a_program_has_a_folder_an_environment_an_output_and_an_end_of_its_own(
    prompter: Prompter, tmp_path: Path
) -> None:
    out, log = tmp_path / "out", tmp_path / "log"

    actor = prompter.enter(f"{__name__}:tell", ["a", "b"], folder=tmp_path, environ={"WORD": "hello"}, out=out, log=log)

    assert actor.wait(30) == actor.poll() == actor.returncode == 7
    assert out.read_text() == f"{actor.pid} {tmp_path} hello a b\n"
    assert log.read_text() == "aside\n"


def test_a_program_may_be_waited_for_and_killed(prompter: Prompter, tmp_path: Path) -> None:
    out = tmp_path / "out"
    actor = prompter.enter(f"{__name__}:stay", out=out, log=out)
    wait_for(lambda: out.exists() and out.read_text() == f"{actor.pid}\n", "it stays")

    with pytest.raises(subprocess.TimeoutExpired):
        actor.wait(0.05)
    assert actor.poll() is None
    actor.kill()

    assert actor.wait(30) == -signal.SIGKILL
    assert not lives(actor.pid)


def test_no_program_outlives_whoever_asked_for_it(tmp_path: Path) -> None:
    command = [sys.executable, "-c", f"from {__name__} import ask_and_stay; ask_and_stay()"]
    asker = subprocess.Popen(command, cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(ROOT)})
    pids = tmp_path / "pids"
    both = [int(pid) for pid in wait_for(lambda: pids.exists() and pids.read_text().split(), "it has asked")]
    assert all(lives(pid) for pid in both)

    asker.kill()
    asker.wait()

    wait_for(lambda: not any(lives(pid) for pid in both), "all are gone")
