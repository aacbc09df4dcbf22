"""The command line from the outside, with a worker at work: the main paths, on both databases."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.cli import Shell, until


@pytest.fixture(scope="module")
def shell(shared_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shell]:
    """One worker for all tests here."""
    shell = Shell.prepare(tmp_path_factory.mktemp("shell"), shared_url)
    with shell.worker("--name", "ann", "--labels", "gpu,big"):
        yield shell


def submit(shell: Shell, *arguments: str) -> str:
    """The number of a new job."""
    return str(shell.quick("submit", *arguments, "--json").json["job_id"])


def test_a_submitted_job_is_done_by_a_worker_and_shown(shell: Shell) -> None:
    submitted = shell("submit", "greet", '{"to": "all"}', "--subject", "film/7", "--wait", "--json")
    number = submitted.lines[0]["job_id"]
    job = shell("job", str(number), "--json").json
    page = shell("jobs", "--status", "completed", "--subject", "film/7", "--json").json
    text = shell("job", str(number)).out

    assert submitted.code == 0
    assert submitted.lines[0] == {"job_id": number, "created": True}
    assert submitted.lines[-1]["status"] == "completed"
    assert (job["status"], job["progress"], job["plan"]) == ("completed", 1.0, {"speak": 2})
    assert job["spec"] == {"to": "all"}
    assert ([line["id"] for line in page["jobs"]], page["next"]) == ([number], None)
    assert f"Job {number}  greet@1  completed  ######################## 100%" in text
    assert "UTC" in text


def test_a_failed_job_ends_the_wait_with_5_and_can_be_retried(shell: Shell, tmp_path: Path) -> None:
    cure = tmp_path / "cure"
    failed = shell("submit", "broken", f'{{"cure": "{cure}"}}', "--wait")
    number = failed.out.split()[2].rstrip(".")
    cure.touch()
    retried = shell("retry", number)
    watched = shell("watch", number)

    assert failed.code == 5
    assert f"Job {number} failed in fail: it is broken" in failed.out
    assert (retried.code, retried.out) == (0, f"Job {number} runs again (generation 2).\n")
    assert watched.code == 0
    assert f"Job {number} completed" in watched.out


def test_whoever_waited_is_told_where_the_results_are(shell: Shell) -> None:
    said = shell("submit", "greet", "--wait")
    number = said.out.split()[2].rstrip(".")

    assert said.code == 0
    assert said.out.endswith(f"\n`telecine job {number}` shows its results.\n")


def test_a_running_job_is_cancelled(shell: Shell, tmp_path: Path) -> None:
    number = submit(shell, "slow", f'{{"end": "{tmp_path}/end"}}')
    until(lambda: shell.quick("job", number, "--json").json["status"] == "processing")
    cancelled = shell("cancel", number, "--reason", "enough")
    watched = shell("watch", number, "--json")

    assert cancelled.code == 0
    assert watched.code == 5
    assert watched.lines[-1]["status"] == "cancelled"
    assert watched.lines[-1]["error"]["message"] == "enough"


def test_logs_show_lines_and_steps(shell: Shell) -> None:
    number = submit(shell, "greet")
    lines = shell("logs", number, "--json", "--follow").lines
    text = shell("logs", number).out

    assert {line["kind"] for line in lines} == {"log", "step"}
    assert lines[0]["data"] == {"people": 2}
    assert "planning" in text
    assert "$ say Ada" in text


def test_a_worker_is_listed_drained_and_enabled(shell: Shell) -> None:
    [ann] = shell.workers()
    drained = shell("workers", "drain", str(ann["id"]))
    [draining] = shell.workers()
    shell("workers", "enable", str(ann["id"]))
    [active] = shell("workers", "--json").json["workers"]

    assert (ann["name"], ann["slots"], ann["labels"], ann["shown"]) == ("ann", 2, ["gpu", "big"], "idle")
    assert drained.out == f"Worker {ann['id']} is draining now.\n"
    assert (draining["mode"], active["mode"]) == ("draining", "active")


def test_a_paused_flow_waits_and_goes_on(shell: Shell) -> None:
    paused = shell("flows", "pause", "greet")
    number = submit(shell, "greet")
    waiting = shell("job", number, "--json").json["waiting"][0]["reason"]
    resumed = shell("flows", "resume", "greet")
    watched = shell("watch", number)

    assert (paused.code, resumed.code, watched.code) == (0, 0, 0)
    assert waiting == "paused"
    assert "greet" in shell("flows").out
