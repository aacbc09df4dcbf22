"""The oldest PostgreSQL that the wheel has does what the newest does; `make proof` runs the whole contract on it."""

from pathlib import Path

import pytest

from telecine.store import postgres
from tests.e2e.cli import Shell, ended, until
from tests.support.postgres import OLDEST, PrivatePostgres


def test_an_older_postgresql_runs_fails_retries_and_cancels_jobs(tmp_path: Path) -> None:
    with PrivatePostgres(tmp_path, release=OLDEST) as server:
        shell, cure = Shell.prepare(tmp_path, server.url), tmp_path / "cure"

        def submit(flow: str, spec: str = "{}") -> str:
            return str(shell.quick("submit", flow, spec, "--flows", "some_flows", "--json").json["job_id"])

        def reaches(job: str, status: str) -> None:
            until(lambda: shell.quick("job", job, "--json").json["status"] == status)

        assert shell("migrate").code == 0
        with ended(shell.start("worker", "--flows", "some_flows", out=tmp_path / "out", log=tmp_path / "log")):
            reaches(submit("greet"), "completed")
            broken = submit("broken", f'{{"cure": "{cure}"}}')
            reaches(broken, "failed")
            cure.touch()
            shell.quick("retry", broken)
            reaches(broken, "completed")
            slow = submit("slow", f'{{"end": "{tmp_path}/never"}}')
            reaches(slow, "processing")
            shell.quick("cancel", slow)
            reaches(slow, "cancelled")

        found = {one["name"]: one["verdict"] for one in shell.quick("doctor", "--json").lines}
    assert found["audit"] == "ok"


def test_a_postgresql_that_is_too_old_is_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(postgres, "OLDEST_RELEASE", OLDEST + 1)

    with PrivatePostgres(tmp_path, release=OLDEST) as server:
        told = Shell.prepare(tmp_path, server.url).quick("jobs")

    assert (told.code, told.out) == (6, "")
    assert told.err == f"telecine: PostgreSQL {OLDEST} is too old: Telecine needs {OLDEST + 1} or newer\n"
