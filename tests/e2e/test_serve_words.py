"""What `telecine serve` says to whoever starts it."""

import socket
from pathlib import Path

import pytest

from tests.e2e.cli import Shell, ended, until


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


def test_where_somebody_has_logged_in_before_it_says_how_to_get_a_link(shell: Shell) -> None:
    shell("keys", "create", "--scope", "admin")

    out = shell.folder / "server.out"
    with ended(shell.start("serve", "--port", "0", out=out, log=out)):
        told = until(lambda: out.exists() and len(lines := out.read_text().splitlines(keepends=True)) > 1 and lines)

    assert told[0].startswith("Telecine serves on http://127.0.0.1:")
    assert told[1] == "Log in: `telecine login` makes a link\n"


def test_a_key_of_nobody_is_not_made(shell: Shell) -> None:
    nobodys = shell("keys", "create")
    both = shell("keys", "create", "--scope", "admin", "--owner", "ada")

    assert (nobodys.code, nobodys.out, both.code, both.out) == (2, "", 2, "")
    assert "say whose, --owner NAME, or make one with --scope admin" in nobodys.err
    assert "leave --owner out" in both.err
