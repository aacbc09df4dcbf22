"""What `telecine serve` says to whoever starts it."""

import socket
from pathlib import Path

import pytest

from tests.e2e.cli import Shell


@pytest.fixture
def shell(tmp_path: Path, sqlite_url: str) -> Shell:
    return Shell.prepare(tmp_path, sqlite_url)


def test_a_port_that_is_taken_is_one_sentence(shell: Shell) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        said = shell("serve", "--port", str(port))

    told = f"telecine: port {port} is taken: stop what listens there, or choose another with --port\n"
    assert (said.code, said.out, said.err) == (2, "", told)


@pytest.mark.parametrize("host", ["203.0.113.7", "no.such.host.invalid", "a..b"])
def test_an_address_of_another_machine_is_one_sentence(shell: Shell, host: str) -> None:
    said = shell("serve", "--host", host, "--port", "0")

    assert (said.code, said.out) == (2, "")
    assert said.err.startswith(f"telecine: cannot listen on {host} port 0 (")
    assert said.err.count("\n") == 1
