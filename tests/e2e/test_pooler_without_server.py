"""Behind a pooler that has no server commands say so in one sentence; workers and servers wait until it has one."""

import subprocess
from pathlib import Path

import pytest

from tests.e2e.cli import Shell
from tests.fault.server_processes import wait_for
from tests.support.empty_pooler import EmptyPooler, empty_pooler
from tests.support.process_pool import TELECINE, Actor, enter
from tests.support.thorough import THOROUGH

# What PgBouncer, PostgreSQL and others say there; at the login, or at the first query.
WAYS = [
    ("08P01", "server login has been failing, try again later (server_login_retry)", False),
    ("08P01", "no such database: telecine", True),
    ("53300", "sorry, too many clients already", True),
    ("57P03", "the database system is starting up", True),
    ("08006", "query_wait_timeout", False),
    ("28000", "no pg_hba.conf entry", True),
    ("XX000", "something else", False),
]
COMMANDS = [["jobs"], ["submit", "greet", "--flows", "some_flows"], ["migrate"], ["keys"], ["doctor"], ["videos"]]


@pytest.fixture
def shell(tmp_path: Path, sqlite_url: str) -> Shell:
    return Shell.prepare(tmp_path, sqlite_url)


@pytest.mark.parametrize(("state", "words", "at_login"), WAYS, ids=[f"{way[0]} {way[1][:12]}" for way in WAYS])
def test_commands_end_with_a_sentence_and_exit_code_6(shell: Shell, state: str, words: str, at_login: bool) -> None:
    with empty_pooler(state, words, at_login=at_login) as pooler:
        # One way is met by every command, the others by two; all by all in the proof.
        for command in COMMANDS if THOROUGH or state == "53300" else (["jobs"], ["migrate"]):
            said = shell.quick(*command, "--database", pooler.url)

            if command == ["doctor"]:  # which goes on, and lists what it found
                assert said.code == 1
                assert words in said.out + said.err
            else:
                assert (said.code, said.out) == (6, ""), (command, said)
                assert said.err.startswith("telecine: "), said.err
                assert said.err.count("\n") == 1
                assert words in said.err
            assert "Traceback" not in said.out + said.err


@pytest.mark.parametrize("command", [["worker", "--flows", "some_flows"], ["serve", "--json"]], ids=["worker", "serve"])
def test_workers_and_servers_wait_until_the_pooler_has_a_server(
    shell: Shell, postgres: str, command: list[str]
) -> None:
    with empty_pooler("08P01", "server login has been failing", at_login=False) as pooler:
        log = shell.folder / "program.log"
        program = begun(shell, pooler, command, log, f"?{postgres.partition('?')[2].partition('&')[2]}")
        try:
            assert pooler.asked.wait(30)
            wait_for(lambda: "does not answer, trying on" in log.read_text(), "it says that it waits")

            pooler.connect_to(postgres)

            told = "serves" if command[0] == "worker" else '"address"'
            wait_for(lambda: told in log.read_text(), "it works")
            assert "answers again" in log.read_text()
            assert log.read_text().count("does not answer") == 1
            assert "Traceback" not in log.read_text()
            program.terminate()
            assert program.wait(30) == 0
        finally:
            program.kill()


@pytest.mark.parametrize("command", [["worker", "--flows", "some_flows"], ["serve"]], ids=["worker", "serve"])
def test_a_wrong_password_is_not_waited_for(shell: Shell, command: list[str]) -> None:
    with empty_pooler("28P01", 'password authentication failed for user "postgres"') as pooler:
        log = shell.folder / "program.log"
        program = begun(shell, pooler, command, log)
        try:
            assert program.wait(30) == 6
            assert "telecine: PostgreSQL refused the connection: password authentication failed" in log.read_text()
        except subprocess.TimeoutExpired:
            program.kill()
            raise


def begun(shell: Shell, pooler: EmptyPooler, command: list[str], log: Path, query: str = "") -> Actor:
    environ = {**shell.environ, "TELECINE_DATABASE_URL": pooler.url + query, "TELECINE_PORT": "0"}
    return enter(TELECINE, command, folder=shell.folder, environ=environ, out=log, log=log)
