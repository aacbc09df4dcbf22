"""What the command line says about Redis: there, away, or needed and away."""

from pathlib import Path
from typing import Any

import pytest

from tests.e2e.cli import Shell

NOBODY = "redis://:secret@127.0.0.1:1/0"


def redis_check(shell: Shell, mode: str, url: str) -> dict[str, Any]:
    """The doctor's line about Redis."""
    told = shell.quick("doctor", "--json", TELECINE_QUEUE_MODE=mode, TELECINE_REDIS_URL=url).lines
    [check] = [check for check in told if check["name"] == "redis"]
    return dict(check)


def test_the_doctor_says_how_redis_is(tmp_path: Path, sqlite_url: str, redis_url: str) -> None:
    shell = Shell.prepare(tmp_path, sqlite_url)
    shell.quick("migrate")

    there, missed, needed = (
        redis_check(shell, mode, url) for mode, url in (("redis", redis_url), ("hybrid", NOBODY), ("redis", NOBODY))
    )

    assert [check["verdict"] for check in (there, missed, needed)] == ["ok", "warning", "wrong"]
    assert there["finding"].startswith("Redis ")
    assert "the database carries the wake-ups" in missed["finding"]
    assert "nothing starts without it" in needed["finding"]
    assert "secret" not in missed["finding"] + needed["finding"]


@pytest.mark.parametrize(("mode", "refused"), [("redis", True), ("hybrid", False)])
def test_only_redis_mode_refuses_to_begin_without_it(tmp_path: Path, sqlite_url: str, mode: str, refused: bool) -> None:
    shell = Shell.prepare(tmp_path, sqlite_url)
    shell.quick("migrate")

    ended = shell.quick("jobs", "--json", TELECINE_QUEUE_MODE=mode, TELECINE_REDIS_URL=NOBODY)

    assert (ended.code != 0) == refused
    assert ("does not answer" in ended.err) == refused
    assert len(ended.err.strip().splitlines()) == int(refused)
    assert "secret" not in ended.err
