"""What the doctor says about the sandbox, and about the place of artifacts: fine, absent, or broken."""

from pathlib import Path
from typing import Any

import pytest

from telecine.apps.transcode.cli.doctor_media import WALLS, SandboxFindings, _verdicts
from telecine.cli.commands.doctor import DoctorCheck
from telecine.media.sandbox_layers import offered
from tests.e2e.cli import Shell
from tests.support.s3 import KEY, SECRET, serve_s3

ALL_STAND = {"landlock": 7, "tcp": True, "netns": True, "seccomp": True, "rlimits": ["as"]}
ALL_REFUSED: dict[str, str | None] = {one: "refused" for _, _, tries in WALLS for one in tries} | {"scratch": None}


def words(checks: list[DoctorCheck], verdict: str) -> str:
    return "; ".join(check.finding for check in checks if check.verdict == verdict)


def test_walls_that_bite_are_fine() -> None:
    found = list(_verdicts(SandboxFindings(ALL_STAND, ALL_REFUSED)))

    assert words(found, "wrong") == ""
    every = ", ".join(f"{about} ({wall})" for wall, about, _ in WALLS)
    assert "other files (landlock), TCP (tcp), UDP (netns), Unix sockets (seccomp)" in every
    assert every in words(found, "ok")


@pytest.mark.parametrize(
    ("tried", "wall"),
    [(tried, wall) for wall, _, tries in WALLS for tried in tries],
)
def test_a_wall_that_lets_something_through_is_a_fault(tried: str, wall: str) -> None:
    found = list(_verdicts(SandboxFindings(ALL_STAND, {**ALL_REFUSED, tried: None})))

    assert "stands and does not bite" in words(found, "wrong")
    assert f"({wall}: {tried})" in words(found, "wrong")


def test_a_wall_that_is_absent_is_a_warning() -> None:
    found = list(_verdicts(SandboxFindings({**ALL_STAND, "netns": False}, {**ALL_REFUSED, "udp": None})))

    assert words(found, "wrong") == ""
    assert "network namespace" in words(found, "warning")


def test_a_child_that_cannot_work_is_a_fault() -> None:
    found = list(_verdicts(SandboxFindings(ALL_STAND, {**ALL_REFUSED, "scratch": "OSError: no"})))

    assert "cannot write its own folder: OSError: no" in words(found, "wrong")


def doctor(shell: Shell, **environ: str) -> list[dict[str, Any]]:
    return shell.quick("doctor", "--json", **environ).lines


def test_the_real_canary_agrees_with_what_the_machine_offers(tmp_path: Path, sqlite_url: str) -> None:
    shell = Shell.prepare(tmp_path, sqlite_url)
    shell.quick("migrate")

    found = doctor(shell)

    sandbox = [check for check in found if check["name"] == "sandbox"]
    assert [check["verdict"] for check in sandbox].count("wrong") == 0
    said = " ".join(check["finding"] for check in sandbox if check["verdict"] == "ok")
    assert ("(landlock)" in said) == (offered().landlock is not None)
    assert "(rlimits)" in said
    assert all((about in said) == offered().seccomp for wall, about, _ in WALLS if wall == "seccomp")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["some_flows.py", "telecine.db"]


def test_a_bucket_is_written_read_and_left_as_it_was(tmp_path: Path, sqlite_url: str) -> None:
    shell = Shell.prepare(tmp_path, sqlite_url)
    (tmp_path / "s3").mkdir()
    with serve_s3(tmp_path / "s3") as bucket:
        access = {
            "TELECINE_S3_ENDPOINT": bucket.endpoint,
            "TELECINE_S3_ACCESS_KEY_ID": KEY,
            "TELECINE_S3_SECRET_ACCESS_KEY": SECRET,
        }
        places = {place: _artifacts(shell, place, access) for place in (bucket.url, "s3://nowhere")}
        left = [path for path in bucket.folder.rglob("*") if path.is_file()]

    assert places[bucket.url][0] == "ok"
    assert "a file was stored, read and deleted" in places[bucket.url][1]
    assert places["s3://nowhere"][0] == "wrong"
    assert "its bucket does not exist" in places["s3://nowhere"][1]
    assert left == []


def _artifacts(shell: Shell, place: str, access: dict[str, str]) -> tuple[str, str]:
    found = doctor(shell, TELECINE_ARTIFACTS_URL=place, **access)
    check = next(check for check in found if check["name"] == "artifacts")
    return check["verdict"], check["finding"]
