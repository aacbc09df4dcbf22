"""Whatever is expected to go wrong ends in one sentence on standard error and a number that means something."""

import os
import subprocess
from pathlib import Path

import pytest

from telecine.store.migrate import newest
from tests.e2e.cli import PROGRAM, Shell
from tests.support.postgres import fresh_schema


@pytest.fixture
def shell(tmp_path: Path, sqlite_url: str) -> Shell:
    return Shell.prepare(tmp_path, sqlite_url)


@pytest.fixture(scope="module")
def busy(tmp_path_factory: pytest.TempPathFactory) -> Shell:
    """With one job in it."""
    folder = tmp_path_factory.mktemp("busy")
    shell = Shell.prepare(folder, f"sqlite:///{folder}/telecine.db")
    shell.quick("submit", "greet", "--flows", "some_flows")
    return shell


BAD_INPUT = [
    (["submit"], "Missing argument"),
    (["submit", "greet", "{'a': 1}"], "the spec is not JSON"),
    (["submit", "greet", "@nowhere.json"], "nowhere.json cannot be read: No such file or directory"),
    (["submit", "greet", "--priority", "huge"], "priority 'huge' is unknown"),
    (["submit", "greet", "--priority", "11"], "priority 11 is out of range"),
    (["submit", "greet", "--run-at", "soon"], "'soon' is not a moment"),
    (["submit", "greet", "--subject", "film"], "subject 'film' is not understood; write kind/id"),
    (["submit", "greet", "--skip", "dance"], "flow 'greet' has no stage 'dance' to skip"),
    (["submit", "greet", "--flows", "no_such_module"], "there is no module 'no_such_module' here"),
    (["submit", "transcode"], "a transcode job needs a spec like"),
    (["submit", "transcode", '{"source": "film.mkv"}'], "source: 'film.mkv' is a relative path"),
    (["submit", "transcode", '{"source": "/film.mkv", "lader": "web"}'], "did you mean 'ladder'?"),
    (["submit", "transcode", '{"source": "/film.mkv", "ladder": "wb"}'], "did you mean 'web'?"),
    (["submit", "transcode", '{"sorce": "/film.mkv"}'], "a transcode spec has no 'sorce'; did you mean 'source'?"),
    (["submit", "transcode", '{"source": "ftp://host/film.mkv"}'], "ftp:// is no place for a source; give http(s)://"),
    (["submit", "transcode", '{"source": "http://10.0.0.1/a.mkv"}'], "10.0.0.1 is not on the public internet"),
    (
        ["submit", "transcode", '{"source": "/film.mkv", "qualities": ["721p"]}'],
        "the ladder has no rung '721p'; it has",
    ),
    (["submit", "greet", "[" * 100_000], "the spec is nested too deeply: at most 64 levels are taken"),
    (["transcode", "ftp://host/film.mkv"], "ftp:// is no place for a source; give http(s)://"),
    (["transcode", "http://127.0.0.1/film.mkv"], "127.0.0.1 is not on the public internet"),
    (["transcode", "https://example.org/a.mkv", "--qualities", "721p"], "the ladder has no rung '721p'; it has"),
    (["video", "film-1", "--delete"], "add --yes to do it without a question"),
    (["jobs", "--status", "lost"], "status 'lost' is unknown"),
    (["jobs", "--since", "yesterday"], "'yesterday' is not a moment; write -2h, or a date"),
    (["jobs", "--limit", "0"], "Invalid value for '--limit'"),
    (["jobs", "--cursor", "x"], "cursor 'x' is not one that this list gave"),
    (["job", "seven"], "Invalid value for 'ID'"),
    (["transcode", "film.mp4", "--damaged", "maybe"], "'maybe' is not one of 'fail', 'warn' (see"),
    (["sample", "film.webm"], "no film of H.264 and AAC can be written as .webm; use one of .mp4, "),
    (["frobnicate"], "No such command 'frobnicate'"),
    (["jobs", "--colour"], "No such option: --colour"),
    (["jobs", "--database", "mysql://host/db"], "'mysql://host/db' is not understood"),
    (["--database", "mysql://host/db", "jobs"], "'mysql://host/db' is not understood"),
    (["worker", "--flows", "some_flows", "--labels", "a/b"], "label 'a/b' may not"),
]


@pytest.mark.parametrize(("arguments", "sentence"), BAD_INPUT, ids=lambda value: str(value)[:50])
def test_bad_input_is_one_sentence_and_2(busy: Shell, arguments: list[str], sentence: str) -> None:
    said = busy.quick(*arguments)

    assert (said.code, said.out) == (2, "")
    assert sentence in said.err
    assert said.err.startswith("telecine: ")
    assert said.err.count("\n") == 1


NOT_FOUND = [
    ["job", "99"],
    ["watch", "99"],
    ["cancel", "99"],
    ["retry", "99"],
    ["logs", "99"],
    ["submit", "dance"],
    ["submit", "greet", "--after", "99"],
    ["workers", "drain", "99"],
    ["flows", "pause", "dance"],
]


@pytest.mark.parametrize("arguments", NOT_FOUND, ids=" ".join)
def test_what_does_not_exist_is_3(busy: Shell, arguments: list[str]) -> None:
    said = busy.quick(*arguments)

    assert (said.code, said.out) == (3, "")
    assert said.err.startswith("telecine: ")
    assert said.err.count("\n") == 1


def test_a_conflict_is_4(busy: Shell) -> None:
    said = busy("retry", "1")

    assert said.code == 4
    assert said.err == "telecine: job 1 is pending: only a failed or cancelled job can be retried\n"


def test_a_database_that_is_not_there_is_6(shell: Shell) -> None:
    missing = shell("jobs")
    refused = shell("jobs", "--database", "postgresql://user:s3cret@127.0.0.1:1/name")
    folder = shell("submit", "greet", "--database", f"sqlite:///{shell.folder}")

    assert (missing.code, refused.code, folder.code) == (6, 6, 6)
    assert "telecine.db: go to the folder where the work was begun, or name its database with --database" in missing.err
    assert refused.err == "telecine: PostgreSQL cannot be reached: Connection refused (127.0.0.1, port 1)\n"
    assert "cannot be opened" in folder.err
    assert not (shell.folder / "telecine.db").exists()


def test_a_postgresql_that_was_never_migrated_names_the_way_out(shell: Shell, postgres_url: str) -> None:
    with fresh_schema(postgres_url) as empty:
        before = shell.quick("jobs", "--database", empty)
        migrated = shell.quick("migrate", "--database", empty)
        again = shell.quick("migrate", "--database", empty, "--json")
        after = shell.quick("jobs", "--database", empty)

    assert before.code == 6
    assert "run `telecine migrate`" in before.err
    last = newest("postgres")
    assert migrated.out == f"The database was brought from schema none to {last}.\n"
    assert again.json == {"before": last, "after": last, "changed": False}
    assert (after.code, after.out) == (0, "No jobs.\n")


def test_a_worker_that_cannot_store_anything_does_not_start(busy: Shell) -> None:
    start = ["worker", "--flows", "some_flows"]
    artifacts = busy(*start, TELECINE_ARTIFACTS_URL="ftp://host/folder")
    scratch = busy(*start, TELECINE_SCRATCH="some_flows.py/scratch")

    assert (artifacts.code, scratch.code) == (2, 2)
    assert artifacts.err.startswith("telecine: artifacts cannot be stored there: ")
    assert scratch.err.startswith("telecine: there can be no scratch folder at some_flows.py/scratch: ")


def test_a_typo_in_a_setting_is_refused_with_a_hint(shell: Shell) -> None:
    said = shell("jobs", TELECINE_LEASE_SECOND="5")

    assert said.code == 2
    assert said.err == "telecine: unknown setting TELECINE_LEASE_SECOND; did you mean TELECINE_LEASE_SECONDS?\n"


@pytest.mark.parametrize("command", ["config --json", "config", "events", "events --json"])
def test_a_reader_that_leaves_early_is_no_fault_and_causes_no_noise(busy: Shell, command: str) -> None:
    pipe = f"{PROGRAM} {command} | true; exit ${{PIPESTATUS[0]}}"

    done = subprocess.run(
        ["bash", "-c", pipe], cwd=busy.folder, env=busy.environ, capture_output=True, text=True, check=False
    )

    assert (done.returncode, done.stderr) == (0, "")


def test_a_key_that_has_no_place_is_not_made(busy: Shell) -> None:
    path = busy.folder / "attic.key"
    made = busy.quick("workers", "register", "attic", "--out", "attic.key")
    written = path.read_text()
    again = busy.quick("workers", "register", "attic", "--out", "attic.key")
    nowhere = busy.quick("workers", "register", "attic", "--out", "nowhere/attic.key")

    assert (made.code, again.code, nowhere.code) == (0, 2, 2)
    assert again.err == "telecine: attic.key is there already: choose another file, or remove that one\n"
    assert (path.read_text(), path.stat().st_mode & 0o777) == (written, 0o600)
    assert [key["name"] for key in busy.quick("keys", "--json").json["keys"]] == ["attic"]


def test_a_key_that_cannot_be_made_leaves_no_file(shell: Shell) -> None:
    said = shell.quick("workers", "register", "attic", "--out", "attic.key", "--database", f"sqlite:///{shell.folder}")

    assert said.code == 6
    assert not (shell.folder / "attic.key").exists()


def test_nothing_that_is_refused_leaves_a_job(busy: Shell) -> None:
    for arguments, _ in BAD_INPUT:
        if arguments[0] in ("submit", "transcode"):
            busy.quick(*arguments)

    assert [job["flow"] for job in busy.quick("jobs", "--json").json["jobs"]] == ["greet"]


def test_the_database_may_stand_before_the_command(busy: Shell, tmp_path: Path, sqlite_url: str) -> None:
    other = f"sqlite:///{tmp_path}/other.db"

    made = busy.quick("--database", other, "submit", "greet", "--flows", "some_flows", "--json")
    before, after = busy.quick("--database", other, "jobs", "--json"), busy.quick("jobs", "--database", other, "--json")
    both = busy.quick("--database", "mysql://host/db", "jobs", "--database", other, "--json")

    assert made.code == 0
    assert before.json == after.json == both.json
    assert len(before.json["jobs"]) == 1
    assert (tmp_path / "other.db").exists()


def test_json_may_stand_before_the_command(busy: Shell, tmp_path: Path) -> None:
    wanted = busy.quick("jobs", "--json")
    groups = (["--json", "workers", "list"], ["workers", "--json", "list"], ["--json", "workers"])

    assert busy.quick("--json", "jobs").json == busy.quick("--json", "jobs", "--json").json == wanted.json
    assert [busy.quick(*words).json for words in groups] == [busy.quick("workers", "list", "--json").json] * 3
    assert busy.quick("jobs").out.startswith("job"), "one command's options are not the next one's"
    other = busy.quick("workers", "--database", f"sqlite:///{tmp_path}/none.db", "list")
    assert (other.code, "there is no database" in other.err) == (6, True)


@pytest.mark.parametrize("command", [["doctor"], ["worker"], ["serve", "--port", "0"], ["transcode", "film.mp4"]])
def test_a_ladder_that_there_is_not_is_found_before_any_work(shell: Shell, command: list[str]) -> None:
    (shell.folder / "film.mp4").touch()

    said = shell(*command, TELECINE_LADDER="wbe")

    assert said.code == (1 if command == ["doctor"] else 2)
    assert "there is no ladder 'wbe'; did you mean 'web'?" in said.out + said.err
    assert "Traceback" not in said.err


@pytest.mark.parametrize(("answer", "code"), [("n", 130), ("y", 3)])
def test_on_a_terminal_a_deletion_is_asked_for(busy: Shell, answer: str, code: int) -> None:
    person, terminal = os.openpty()
    try:
        os.write(person, f"{answer}\n".encode())
        asked = subprocess.run(
            [PROGRAM, "video", "film-1", "--delete"], cwd=busy.folder, env=busy.environ, stdin=terminal,
            capture_output=True, text=True, timeout=60, check=False,
        )  # fmt: skip
    finally:
        os.close(person)
        os.close(terminal)

    assert asked.returncode == code
    assert "Delete film-1 and its files for good?" in asked.stderr
    assert ("Nothing was deleted." in asked.stderr) == (answer == "n")
