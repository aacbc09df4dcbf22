"""What strangers have written reaches no terminal as a command; what goes into a pipe is not wrapped."""

import io
import sys
from pathlib import Path

import pytest
from rich.live import Live
from rich.segment import Segment, Segments
from rich.text import Text

from telecine.cli.rich_output import SafeConsole, SafeTable
from telecine.cli.terminal import UNSAFE, safe, safe_streams
from tests.e2e.cli import Shell, until


def test_a_live_display_moves_the_cursor_and_escapes_what_is_printed_beside_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    terminal = io.StringIO()
    monkeypatch.setattr(sys, "stdout", terminal)

    with safe_streams(), Live("one", console=SafeConsole(force_terminal=True), auto_refresh=False) as live:
        live.update("two", refresh=True)
        print("named \x9b31m by a stranger")

    assert "\x1b[" in terminal.getvalue()
    assert "\\u001b" not in terminal.getvalue()
    assert "\x9b" not in terminal.getvalue()


EVIL = "a\x1b]0;owned\x1b\\b\x9b31mc\u202ed\x7fe"
SHOWN = "a\\u001b]0;owned\\u001b\\b\\u009b31mc\\u202ed\\u007fe"


@pytest.fixture
def shell(tmp_path: Path, sqlite_url: str) -> Shell:
    (tmp_path / "evil.py").write_text(
        "from telecine import Failed, Flow\n"
        "evil = Flow('evil')\n"
        "@evil.stage(run='thread')\n"
        "def work(bench):\n"
        f"    bench.log({EVIL!r}, name={EVIL!r})\n"
        f"    bench.step({EVIL!r}, tail={EVIL!r})\n"
        f"    return Failed({EVIL!r}, code='evil', permanent=True)\n"
    )
    return Shell.prepare(tmp_path, sqlite_url)


def test_no_command_prints_control_characters_of_owners_and_workers(shell: Shell) -> None:
    shell.quick("keys", "create", "--owner", EVIL, "--name", EVIL)
    shell.quick("submit", "evil", "--flows", "evil.py", "--subject", f"video/{EVIL}", "--owner", EVIL)
    with shell.worker("--flows", "evil.py", "--name", EVIL):
        until(lambda: shell.quick("job", "1", "--json").json["status"] == "failed")
    worker = (shell.folder / "worker.log").read_text()
    commands = [
        *(("keys",), ("jobs",), ("job", "1"), ("logs", "1"), ("events",), ("workers", "list", "--all")),
        *(("video", EVIL), ("job", EVIL), ("cancel", "1", "--json"), ("watch", "1"), ("jobs", "--json"), (EVIL,)),
    ]

    said = {command: shell.quick(*command) for command in commands}
    wrong = [command for command, one in said.items() if UNSAFE.search(one.out + one.err)]

    assert wrong == []
    assert not UNSAFE.search(worker)
    told = {command[0] for command in commands if "owned" in said[command].out + said[command].err}
    assert {"keys", "job", "logs", "workers", "video", EVIL} <= told
    assert said[("jobs", "--json")].json["jobs"][0]["subject"] == ["video", EVIL]


def test_a_message_in_a_pipe_is_one_line(shell: Shell) -> None:
    name = "long " * 100

    shell.quick("keys", "create", "--owner", "ada", "--name", name)
    said = shell.quick("keys")

    assert len(said.out.splitlines()) == 2
    assert name.strip() in said.out


def test_colours_are_ours_alone() -> None:
    out = io.StringIO()
    console = SafeConsole(file=out, force_terminal=True, width=200, color_system="standard", highlight=False)
    table = SafeTable("name")
    table.add_row(Text(EVIL, style="red"))

    console.print(table)
    console.print(EVIL)
    console.print(Text.assemble(("ours", "blue"), EVIL))

    text = out.getvalue()
    assert text.count(SHOWN) == 3
    assert "\x1b[31m" in text
    assert "\x1b]" not in text
    assert not {"\x9b", "\u202e", "\x7f"} & set(text)


def test_what_is_safe_stays_as_it_is() -> None:
    assert safe("Amélie\t→ 東京 👩‍🎬\n") == "Amélie\t→ 東京 👩‍🎬\n"


def test_progress_on_one_line_returns_to_its_start() -> None:
    out = io.StringIO()
    console = SafeConsole(file=out, force_terminal=True, width=80, color_system=None, highlight=False)

    for percent in (1, 2):
        console.print(f"Reading a\rb: {percent}%", style="dim", end="\r")
    console.print(Segments([Segment("c"), Segment("\r")]))

    assert out.getvalue() == "Reading a\\u000db: 1%\rReading a\\u000db: 2%\rc\\u000d"
