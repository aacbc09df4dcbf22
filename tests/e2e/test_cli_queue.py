"""The command line where nothing runs: submit, list, and why things wait."""

import asyncio
import json
from contextlib import aclosing
from functools import partial
from pathlib import Path

import pytest

import telecine
from telecine.cli.commands.watch import held_words, views_of, worker_for
from tests.e2e.cli import Shell, ended, until


@pytest.fixture
def shell(tmp_path: Path, url: str) -> Shell:
    return Shell.prepare(tmp_path, url)


def test_what_waits_says_why(shell: Shell) -> None:
    shell.quick("submit", "slow", '{"end": ""}', "--flows", "some_flows", "--run-at", "+1h")
    shell.quick("submit", "slow", '{"end": ""}', "--after", "1")
    shell.quick("submit", "slow", '{"end": ""}')

    reasons = [shell.quick("job", str(job), "--json").json["waiting"][0]["reason"] for job in (1, 2, 3)]
    text = shell.quick("job", "3").out

    assert reasons == ["parked", "after", "no_worker"]
    assert "no live worker serves slow/work@1" in text


def test_jobs_are_listed_page_by_page(shell: Shell) -> None:
    for number in range(5):
        shell.quick("submit", "greet", "--flows", "some_flows", "--owner", "ann", "--key", f"k{number}")

    first = shell.quick("jobs", "--owner", "ann", "--limit", "3", "--json").json
    second = shell.quick("jobs", "--owner", "ann", "--limit", "3", "--cursor", first["next"], "--json").json

    assert [[line["id"] for line in page["jobs"]] for page in (first, second)] == [[5, 4, 3], [2, 1]]
    assert second["next"] is None


def test_a_repeated_key_says_that_the_job_was_there(shell: Shell) -> None:
    first = shell.quick("submit", "greet", "--flows", "some_flows", "--key", "k")
    again = shell.quick("submit", "greet", "--key", "k")
    other = shell.quick("submit", "greet", "[1]", "--key", "k")

    assert first.out == "Submitted job 1.\n"
    assert again.out == "Job 1 was already there.\n"
    assert (other.code, other.out) == (4, "")
    assert other.err.startswith("telecine: idempotency key 'k' was used for job 1")


def test_the_spec_comes_from_a_file_or_from_standard_input(shell: Shell, tmp_path: Path) -> None:
    (tmp_path / "spec.json").write_text('{"from": "file"}')

    shell.quick("submit", "greet", "@spec.json", "--flows", "some_flows")
    shell("submit", "greet", "-", stdin='{"from": "stdin"}')

    specs = [shell.quick("job", str(job), "--json").json["spec"]["from"] for job in (1, 2)]
    assert specs == ["file", "stdin"]


def test_whoever_waits_hears_that_nobody_serves_the_job(shell: Shell) -> None:
    shell.quick("submit", "slow", '{"end": ""}', "--flows", "some_flows")
    for options in ([], ["--json"]):
        out = shell.folder / f"watch{''.join(options)}"
        with ended(shell.start("watch", "1", *options, out=out, log=out)):
            said = until(partial(lines_of, out, 1 if options else 2))

        assert "no live worker serves slow/work@1" in said
        assert ("start one with `telecine worker --flows MODULE`" in said) == (not options)


def test_that_nobody_serves_a_job_is_said_only_if_it_stays_so(shell: Shell) -> None:
    shell.quick("submit", "slow", '{"end": ""}', "--flows", "some_flows")

    async def story() -> list[tuple[bool, dict[str, str]]]:
        async with telecine.connect(shell.url) as client, aclosing(views_of(client, 1)) as views:
            looks = [await anext(views) for _ in range(2)]
            return [(settled, await held_words(client, view, settled=settled)) for view, settled in looks]

    at_once, later = asyncio.run(story())

    words = "work waits: no live worker serves slow/work@1; start one with `telecine worker --flows MODULE`"
    assert worker_for("transcode") == "telecine worker"
    assert at_once == (False, {})
    assert later == (True, {"work": words})


def test_a_list_has_one_line_for_each_job_and_its_error_below(shell: Shell) -> None:
    for reason in ("one.\n" * 60, "cancelled"):
        shell.quick("submit", "greet", "--flows", "some_flows")
        shell.quick("cancel", "2" if reason == "cancelled" else "1", "--reason", reason)

    narrow = shell("jobs", COLUMNS="80").out.splitlines()
    wide = shell("jobs", COLUMNS="160").out.splitlines()

    assert [line.split()[0] for line in narrow] == ["job", "2", "1", "cancelled:"]
    assert narrow[-1].startswith("     cancelled: one. one. one. ")
    assert (len(narrow[-1]), narrow[-1][-1]) == (80, "…")
    assert [line.split()[0] for line in wide] == ["job", "2", "1"]
    assert "cancelled: one. one. one. " in wide[-1]


def test_a_list_in_a_pipe_has_the_whole_error(shell: Shell) -> None:
    reason = "word " * 100 + "end"
    for number in ("1", "2"):
        shell.quick("submit", "greet", "--flows", "some_flows", "{}" if number == "1" else json.dumps({"a": "b" * 500}))
    shell.quick("cancel", "1", "--reason", reason)

    rows = shell("jobs").out.splitlines()
    page = shell("job", "2").out

    assert [line.split()[0] for line in rows] == ["job", "2", "1"]
    assert rows[2].endswith(reason)
    assert all(line == line.rstrip() for line in rows)
    assert "b" * 500 in page


def test_a_job_that_was_cancelled_without_a_reason_says_so_once(shell: Shell) -> None:
    shell.quick("submit", "greet", "--flows", "some_flows")
    shell.quick("cancel", "1")

    page, ending, row = shell.quick("job", "1").out, shell.quick("watch", "1").out, shell.quick("jobs").out

    assert page.endswith("\n\ncancelled\n")
    assert ending.endswith("\nJob 1 cancelled\n")
    assert "cancelled: " not in page + ending + row


def test_brackets_in_what_people_write_are_shown_as_they_are(shell: Shell) -> None:
    reason = "cannot read [/mnt/films] [mov,mp4 @ 0x5]"
    shell.quick("submit", "greet", "--flows", "some_flows", "--subject", "film/[/b]")
    shell.quick("cancel", "1", "--reason", reason)

    page, ending, row = (shell.quick(*words) for words in (["job", "1"], ["watch", "1"], ["jobs"]))

    assert all(reason in said.out and not said.err for said in (page, ending, row))
    assert "film/[/b]" in row.out


def test_a_job_without_log_lines_says_so_beside_them(shell: Shell) -> None:
    shell.quick("submit", "greet", "--flows", "some_flows")

    told = shell.quick("logs", "1")
    picky = shell.quick("logs", "1", "--level", "error", "--json")

    assert (told.code, told.out, told.err) == (0, "", "Job 1 has no log lines.\n")
    assert (picky.out, picky.err) == ("", "Job 1 has no log lines of level error or above.\n")


def test_an_unknown_log_level_is_refused(shell: Shell) -> None:
    shell.quick("submit", "greet", "--flows", "some_flows")

    loud = shell.quick("logs", "1", "--level", "loud")

    told = "telecine: unknown log level 'loud': use one of debug, info, warning, error\n"
    assert (loud.code, loud.out, loud.err) == (2, "", told)


def lines_of(path: Path, count: int) -> str:
    """What is in it, once it has so many lines."""
    text = path.read_text() if path.exists() else ""
    return text if text.count("\n") >= count else ""


def test_events_of_a_job_that_does_not_exist_are_refused(shell: Shell) -> None:
    shell.quick("migrate")

    said = shell.quick("events", "--job", "999")

    assert (said.code, said.out, said.err) == (3, "", "telecine: there is no job 999\n")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["job", "abc"], "'abc' is not a whole number"),
        (["jobs", "--limit", "x"], "'x' is not a whole number"),
        (["jobs", "--limit", "0"], "0 is too small; the least is 1"),
        (["jobs", "--limit", "501"], "501 is too much; the most is 500"),
    ],
)
def test_a_value_that_does_not_fit_is_refused_in_our_words(shell: Shell, arguments: list[str], words: str) -> None:
    said = shell.quick(*arguments)

    assert (said.code, said.err.count("\n")) == (2, 1)
    assert words in said.err
    assert "Input should" not in said.err
