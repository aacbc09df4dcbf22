"""Schemathesis against a real server: every check, also of what follows what; no answer that the schema does not know.

Left out: the stream of events, which never ends, the end of one's own session, and uploads, whose protocol (tus) says
412 and not 400 to a missing header; all of them have tests of their own.
"""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from tests.e2e.cli import Shell, ended, first_object
from tests.support.thorough import some_of

HERE = Path(__file__).parent
BIN = Path(sys.executable).parent
PATIENCE = 240.0
FLOW = """from telecine import Flow
echo = Flow("echo")
@echo.stage("say")
async def say(bench):
    return None
"""
# Of each way to ask one route: a body, a list with a cursor, a change under a condition, a path of ids. Then all.
SOME_EDGES = r"^/api/v1/(keys|jobs|jobs/\{job_id\})$"
ALL_EDGES = "^/api/(v1/(jobs|keys|workers|flows|webhooks|stats|bulk)|worker/register$)"
SOME_OF_A_WORKER = r"^/api/worker/(enlist|claim|complete|source/\{task\}/\{token\})$"
ALL_OF_A_WORKER = "^/api/worker"
APART = ["--exclude-path=/api/v1/events", "--exclude-path=/api/v1/logout", "--exclude-path-regex=^/api/v1/uploads"]


@contextmanager
def serving(folder: Path, database: str) -> Iterator[tuple[str, str]]:
    """The address of a server and an administrator's key to it."""
    (folder / "flow.py").write_text(FLOW)
    shell = Shell(folder, database)
    for words in (["migrate"], ["keys", "create", "--scope", "admin"]):
        said = shell.quick(*words)
        assert said.code == 0, said.err
    limits = {"TELECINE_RATE_LIMIT": "100000000", "TELECINE_BAD_KEY_LIMIT": "100000000"}
    command = ["serve", "--port", "0", "--json", "--flows", "flow.py"]
    out, log = folder / "out", folder / "log"
    server = shell.start(*command, out=out, log=log, environ={**limits, "TELECINE_LOG_LEVEL": "warning"})
    with ended(server):
        yield first_object(out, server)["address"], said.out.strip()


def fuzz(folder: Path, address: str, key: str, *how: str) -> None:
    done = subprocess.run(
        [
            *(BIN / "st", "--config-file", HERE / "fuzzing.toml", "run", f"{address}/openapi.json"),
            *("-H", f"Authorization: Bearer {key}", "--checks=all", "--exclude-checks=positive_data_acceptance"),
            *("--seed=1", "--request-timeout=60", "--no-color", "--warnings=off", "--continue-on-failure", *how),
        ],
        cwd=folder,
        env={**os.environ, "SCHEMATHESIS_HOOKS": "tests.api.fuzz_hooks", "PYTHONPATH": str(HERE.parents[1])},
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-8_000:] + done.stderr[-2_000:]
    assert "Traceback" not in (folder / "log").read_text()


def test_no_route_answers_what_its_schema_does_not_know(tmp_path: Path, postgres_schema_url: str) -> None:
    with serving(tmp_path, postgres_schema_url) as (address, key):
        fuzz(tmp_path, address, key, "--phases=examples,fuzzing,stateful", *APART)


@pytest.mark.parametrize("paths", some_of([SOME_EDGES, ALL_EDGES], [SOME_EDGES]))
def test_every_edge_of_what_an_administrator_may_say_is_tried(tmp_path: Path, paths: str) -> None:
    with serving(tmp_path, f"sqlite:///{tmp_path}/telecine.db") as (address, admin):
        fuzz(tmp_path, address, admin, "--phases=coverage", f"--include-path-regex={paths}")


@pytest.mark.parametrize("paths", some_of([SOME_OF_A_WORKER, ALL_OF_A_WORKER], [SOME_OF_A_WORKER]))
def test_every_edge_of_what_a_worker_may_say_is_tried(tmp_path: Path, paths: str) -> None:
    with serving(tmp_path, f"sqlite:///{tmp_path}/telecine.db") as (address, admin):
        made = httpx.post(
            f"{address}/api/worker/register", json={"name": "odd"}, headers={"Authorization": f"Bearer {admin}"}
        )
        fuzz(tmp_path, address, made.json()["key"], "--phases=coverage,fuzzing", f"--include-path-regex={paths}")
