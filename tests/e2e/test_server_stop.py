"""A server that is told to stop: it ends in order, gives back what its own worker holds, and its log is ours alone."""

import json
import signal
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx

from tests.e2e.cli import Shell, first_object, until
from tests.support.process_pool import Actor

PATIENCE = 60.0


def start(shell: Shell, log: Path, *options: str) -> tuple[Actor, dict[str, Any]]:
    """A server, and what it says when it listens."""
    out = shell.folder / "server.out"
    command = ("serve", "--port", "0", "--json", "--flows", "some_flows.py", *options)
    server = shell.start(*command, out=out, log=log)
    return server, first_object(out, server)


def test_a_server_that_is_told_to_stop_ends_in_order(tmp_path: Path) -> None:
    shell = Shell.prepare(tmp_path, f"sqlite:///{tmp_path}/telecine.db")
    log = shell.folder / "server.log"
    server, told = start(shell, log, "--workers", "1")
    key = shell("keys", "create", "--owner", "ada").out.strip()
    head = {"Authorization": f"Bearer {key}"}
    job = httpx.post(f"{told['address']}/api/v1/jobs", json={"flow": "stubborn"}, headers=head, timeout=30.0).json()[
        "id"
    ]
    until(lambda: _status(shell, job) == "processing", PATIENCE)

    server.send_signal(signal.SIGTERM)
    code = server.wait(PATIENCE)

    lines = [json.loads(line) for line in log.read_text().splitlines()]
    assert code == 0
    assert "server has stopped" in [line["message"] for line in lines]
    assert {line["logger"].partition(".")[0] for line in lines} == {"telecine"}
    assert any(line["message"] == f"server listens on {told['address']}" for line in lines)
    # Given back at once and unharmed: nobody has to wait for the lease to run out.
    with closing(sqlite3.connect(tmp_path / "telecine.db")) as database:
        assert database.execute("select state, tries, releases from task").fetchall() == [("ready", 0, 1)]
    # Not one secret that the story had is in the log.
    secrets = [key, key.split("_")[3], told["link"].rsplit("/", 1)[1]]
    assert [secret for secret in secrets if secret in log.read_text()] == []


def _status(shell: Shell, job: int) -> str:
    return str(shell.quick("job", str(job), "--json").json["status"])
