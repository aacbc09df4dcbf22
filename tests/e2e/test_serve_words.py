"""What `telecine serve` says to whoever starts it."""

import socket
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from tests.e2e.cli import Shell, ended, first_object, until


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


def test_the_list_of_keys_says_when_each_was_made_and_used_and_when_it_ends(shell: Shell) -> None:
    shell("keys", "create", "--owner", "ada", "--name", "for ever")
    shell("keys", "create", "--owner", "ada", "--name", "short", "--days", "2")

    head, *rows = shell("keys").out.splitlines()

    assert head.split("  ")[0] == "key"
    assert all(column in head for column in ("state", "created", "last used", "expires", "name"))
    lasting, short = sorted(rows, key=lambda row: "short" in row)
    assert "valid" in lasting
    assert " ago" in lasting
    assert lasting.split("never")[2].strip() == "for ever"
    assert "in 1 d 23 h" in short or "in 2 d" in short


def test_an_expired_key_is_not_called_valid(shell: Shell) -> None:
    shell("keys", "create", "--owner", "ada", "--days", "0.001")
    with closing(sqlite3.connect(shell.url.removeprefix("sqlite:///"))) as database, database:
        database.execute("update api_key set expires_at = created_at")

    row = shell("keys").out.splitlines()[1]

    assert "expired" in row
    assert "valid" not in row


@pytest.mark.parametrize(
    ("host", "address", "link"),
    [
        ("0.0.0.0", "http://0.0.0.0:", "http://127.0.0.1:"),
        ("127.0.0.1", "http://127.0.0.1:", "http://127.0.0.1:"),
        ("localhost", "http://localhost:", "http://localhost:"),
    ],
)
def test_it_says_where_it_listens_and_where_others_reach_it(shell: Shell, host: str, address: str, link: str) -> None:
    out = shell.folder / "server.out"
    with ended(process := shell.start("serve", "--host", host, "--port", "0", "--json", out=out, log=out)):
        told = first_object(out, process)
        port = told["address"].rpartition(":")[2]
        with socket.create_connection(("127.0.0.1", int(port))):
            pass

    assert told["address"].startswith(address)
    assert told["public_url"] is None
    assert told["link"].startswith(f"{link}{port}/login/")


def test_behind_a_proxy_it_says_both_addresses(shell: Shell) -> None:
    out = shell.folder / "server.out"
    public = {"TELECINE_PUBLIC_URL": "https://films.example/"}
    with ended(shell.start("serve", "--port", "0", out=out, log=out, environ=public)):
        told = until(lambda: out.exists() and len(lines := out.read_text().splitlines()) > 2 and lines)
        login = shell.quick("login", **public).out

    assert told[0].startswith("Telecine serves on http://127.0.0.1:")
    assert told[1] == "Others reach it at https://films.example"
    assert told[2].startswith("Log in once within 15 minutes: https://films.example/login/")
    assert login.startswith("https://films.example/login/")


def test_a_login_link_for_an_ipv6_address_has_brackets(shell: Shell) -> None:
    shell.quick("migrate")

    assert shell.quick("login", TELECINE_HOST="::1").out.startswith("http://[::1]:8484/login/")
    assert shell.quick("login", TELECINE_HOST="::").out.startswith("http://[::1]:8484/login/")
    assert shell.quick("login", TELECINE_HOST="0.0.0.0").out.startswith("http://127.0.0.1:8484/login/")


@pytest.mark.parametrize("origin", ["example.org", "ftp://example.org", "https://", "https://example.org/films"])
def test_an_origin_without_a_scheme_or_with_a_path_is_refused(shell: Shell, origin: str) -> None:
    said = shell.quick("config", TELECINE_ALLOWED_ORIGINS=f"https://good.example,{origin}")

    assert said.code == 2
    assert f"{origin!r} is no origin: write its scheme and host alone, https://example.org" in said.err
