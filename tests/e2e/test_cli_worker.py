"""A worker in the terminal: how it starts, and how it is told to stop."""

import json
import signal
from pathlib import Path

import pytest

from tests.e2e.cli import PATIENCE, Shell, until


@pytest.fixture
def shell(tmp_path: Path, sqlite_url: str) -> Shell:
    return Shell.prepare(tmp_path, sqlite_url)


def is_running(shell: Shell) -> bool:
    return bool(shell.quick("job", "1", "--json").json["status"] == "processing")


def test_the_first_sigterm_lets_a_worker_finish_what_it_has(shell: Shell, tmp_path: Path) -> None:
    end = tmp_path / "end"
    with shell.worker() as process:
        shell.quick("submit", "slow", f'{{"end": "{end}"}}')
        until(lambda: is_running(shell))

        process.send_signal(signal.SIGTERM)
        until(lambda: shell.workers()[0]["mode"] == "draining")
        end.touch()
        code = process.wait(PATIENCE)

    assert code == 0
    assert shell.quick("job", "1", "--json").json["status"] == "completed"
    assert shell.workers() == []


def test_the_second_signal_ends_a_worker_at_once_and_its_task_goes_back(shell: Shell) -> None:
    with shell.worker() as process:
        shell.quick("submit", "stubborn")
        until(lambda: is_running(shell))

        process.send_signal(signal.SIGINT)
        until(lambda: shell.workers()[0]["mode"] == "draining")
        process.send_signal(signal.SIGINT)
        code = process.wait(PATIENCE)

    [task] = shell.quick("job", "1", "--json").json["stages"]
    assert code == 0
    assert task["counts"] == {"ready": 1}


def test_a_worker_says_what_it_serves_as_text_or_as_json(shell: Shell, tmp_path: Path) -> None:
    log = tmp_path / "worker.log"
    with shell.worker("--name", "ann"):
        text = log.read_text()
    with shell.worker("--name", "bob", "--json"):
        line = json.loads(log.read_text().splitlines()[0])

    assert "worker ann serves transcode, greet, broken, slow, stubborn with 2 slots on sqlite:///" in text
    assert (line["level"], line["logger"]) == ("info", "telecine.wiring")
    assert line["message"].startswith("worker bob serves")


def test_settings_can_come_from_the_file_in_the_current_folder(shell: Shell, tmp_path: Path) -> None:
    (tmp_path / "telecine.toml").write_text('worker_name = "carl"\nlabels = ["gpu"]')

    with shell.worker():
        [carl] = shell.workers()

    assert (carl["name"], carl["labels"]) == ("carl", ["gpu"])
