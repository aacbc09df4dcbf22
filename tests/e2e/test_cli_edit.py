"""What people change of a job from the command line: its priority, its start, and that it runs again."""

from pathlib import Path

import pytest

from tests.e2e.cli import Shell


@pytest.fixture
def shell(tmp_path: Path, url: str) -> Shell:
    shell = Shell.prepare(tmp_path, url)
    shell.quick("submit", "slow", '{"end": ""}', "--flows", "some_flows")
    return shell


def test_an_edit_changes_priority_and_start_and_tells_the_version(shell: Shell) -> None:
    told = shell.quick("edit", "1", "--priority", "high")
    edited = shell.quick("edit", "1", "--run-at", "2090-01-31T18:00", "--version", "2", "--json").json

    assert told.out == "Job 1 has priority 8.\n"
    assert (edited["job_id"], edited["priority"], edited["version"]) == (1, 8, 3)
    assert edited["run_at"] == 3_789_568_800_000
    assert "begins not before 2090-01-31 18:00" in shell.quick("edit", "1", "--priority", "0").out


def test_an_edit_that_makes_no_sense_or_comes_too_late_changes_nothing(shell: Shell) -> None:
    ends = [
        shell.quick("edit", "1"),
        shell.quick("edit", "1", "--priority", "urgent"),
        shell.quick("edit", "1", "--priority", "1", "--version", "9"),
        shell.quick("edit", "77", "--priority", "1"),
    ]
    shell.quick("cancel", "1")
    late = shell.quick("edit", "1", "--priority", "1")

    assert [end.code for end in (*ends, late)] == [2, 2, 4, 3, 4]
    assert all(end.err.startswith("telecine: ") and len(end.err.splitlines()) == 1 for end in (*ends, late))
    assert shell.quick("job", "1", "--json").json["version"] == 1


def test_a_retry_with_its_generation_can_be_said_again(shell: Shell) -> None:
    shell.quick("cancel", "1")

    told = [shell.quick("retry", "1", "--generation", "1", "--json").json["generation"] for _ in range(2)]
    wrong = shell.quick("retry", "1", "--generation", "5")

    assert told == [2, 2]
    assert (wrong.code, wrong.out) == (4, "")
