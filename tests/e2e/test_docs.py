"""The documents say what is: their examples run, their tables agree with the code, their links lead somewhere."""

import inspect
import json
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import MISSING, fields
from pathlib import Path

import pytest

from telecine import Bench, Done, Flow
from telecine.apps.transcode.spec import TranscodeSpec
from telecine.settings import PREFIX, Settings
from telecine.store.migrate import migrations
from tests.e2e.cli import PROGRAM, until
from tests.support.docs import ROOT, blocks_of, commands, environ, play, with_settings, with_tables

DOCUMENTS = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
# Runs the blocks of a page one after the other, as if typed into an interpreter that knows `await`.
INTERPRETER = """
import ast, asyncio, inspect, json, sys
async def main():
    names = {"__name__": "page", "url": sys.argv[1]}
    for text in json.load(sys.stdin):
        made = eval(compile(text, "page", "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT), names)
        if inspect.iscoroutine(made):
            await made
asyncio.run(main())
"""


def interpret(texts: list[str], folder: Path, url: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", INTERPRETER, url],
        cwd=folder,
        env=environ(TELECINE_DATABASE_URL=url, PYTHONPATH=str(folder)),
        input=json.dumps(texts),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr


@pytest.fixture
def page_of_python(tmp_path: Path) -> Path:
    """A folder with the files that docs/python.md shows."""
    for block in blocks_of(ROOT / "docs" / "python.md"):
        if block.is_file:
            (tmp_path / block.name).write_text(block.text)
    return tmp_path


@pytest.fixture
def worker(page_of_python: Path) -> Iterator[None]:
    """Serves them, on the database of that folder."""
    log = page_of_python / "worker.log"
    with log.open("w") as said:
        process = subprocess.Popen(
            [PROGRAM, "worker", "--flows", "greet.py"], cwd=page_of_python, env=environ(), stderr=said
        )
    try:
        until(lambda: "serves" in log.read_text())
        yield
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(30)


def rows_of(path: Path) -> dict[str, list[str]]:
    """All rows of all tables of a document, by their first cell."""
    rows = (line.strip("| ").split(" | ") for line in path.read_text().splitlines() if line.startswith("| `"))
    return {cells[0].strip("` "): [cell.strip() for cell in cells] for cells in rows}


# -- What can be run -----------------------------------------------------------------------------------


def test_the_tutorial_can_be_followed(tmp_path: Path) -> None:
    play(ROOT / "docs" / "tutorial.md", tmp_path)


def test_the_page_of_workers_can_be_followed(tmp_path: Path) -> None:
    play(ROOT / "docs" / "workers.md", tmp_path)


def test_the_first_screen_of_the_readme_works(tmp_path: Path) -> None:
    shorter = {"--seconds 12": "--seconds 2", "12 s of film": "2.0 s of film"}
    play(ROOT / "README.md", tmp_path, instead=shorter)


def test_the_lossless_film_of_the_transcode_page_is_made(tmp_path: Path) -> None:
    play(ROOT / "docs" / "transcode.md", tmp_path, instead={"--seconds 4": "--seconds 2"})


@pytest.mark.usefixtures("worker")
def test_the_examples_of_the_python_page_run(page_of_python: Path) -> None:
    blocks = [block for block in blocks_of(ROOT / "docs" / "python.md") if block.language == "python"]

    interpret([b.text for b in blocks if not b.name], page_of_python, "sqlite:///.telecine/telecine.db")


def test_the_example_with_a_postgresql_transaction_runs(page_of_python: Path, postgres: str) -> None:
    texts = [block.text for block in blocks_of(ROOT / "docs" / "python.md") if block.name == "postgres"]

    assert texts
    interpret(["import telecine\nfrom greet import greet", *texts], page_of_python, postgres)


def test_the_flows_page_declares_a_flow_that_works() -> None:
    names: dict[str, object] = {}

    for block in blocks_of(ROOT / "docs" / "flows.md"):
        if block.language == "python":
            exec(block.text, names)

    [flow] = [value for value in names.values() if isinstance(value, Flow)]
    assert [stage.name for stage in flow.graph.stages] == ["plan", "render", "bind"]


# -- What must agree with the code ---------------------------------------------------------------------


def test_the_command_line_page_has_every_command_with_its_options() -> None:
    text = (ROOT / "docs" / "cli.md").read_text()

    missing = [name for name, _ in commands() if f"<!-- options of {name} -->" not in text]

    assert missing == []
    assert with_tables(text) == text, "run `python -m tests.support.docs`"


def test_the_settings_page_has_every_setting_with_its_default_and_meaning() -> None:
    text = (ROOT / "docs" / "settings.md").read_text()

    assert with_settings(text) == text, "run `python -m tests.support.docs`"
    assert all(f"`{PREFIX}{name.upper()}`" in text for name in Settings.model_fields)


def test_the_transcode_page_has_everything_that_a_spec_may_ask_for() -> None:
    text = (ROOT / "docs" / "transcode.md").read_text()
    table = text[text.index("## What a job may ask for") : text.index("## Versions")]

    assert [name for name in TranscodeSpec.model_fields if f"`{name}`" not in table] == []


def test_the_flows_page_has_every_option_of_a_stage_with_its_default() -> None:
    rows = rows_of(ROOT / "docs" / "flows.md")
    options = [p for name, p in inspect.signature(Flow.stage).parameters.items() if name != "self"]

    assert {p.name: rows[p.name][1] for p in options} == {p.name: f"`{p.default!r}`" for p in options}


def test_the_flows_page_has_every_field_of_done_and_every_member_of_the_bench() -> None:
    text = (ROOT / "docs" / "flows.md").read_text()
    rows = rows_of(ROOT / "docs" / "flows.md")
    members = {name for name in {*vars(Bench), *Bench.__annotations__} if not name.startswith("_")}

    assert [f.name for f in fields(Done) if f.default is MISSING or rows[f.name][1] != f"`{f.default!r}`"] == []
    assert [name for name in sorted(members) if f"`{name}`" not in text] == []


def test_the_architecture_names_every_table_and_no_file_that_is_not_there() -> None:
    text = (ROOT / "ARCHITECTURE.md").read_text()
    tables = re.findall(r"^create table (\w+)", "".join(migrations("postgres").values()), re.MULTILINE)
    files = re.findall(r"`((?:src|tests|docs|proof|benchmarks|examples)/[\w/.*-]+)`", text)

    assert [table for table in tables if f"`{table}`" not in text] == []
    assert files
    assert [file for file in files if not list(ROOT.glob(file))] == []


def test_every_test_that_the_guarantees_cite_exists() -> None:
    text = (ROOT / "docs" / "guarantees.md").read_text()

    cited = re.findall(r"`(tests/\w+/\w+\.py|proof/\w+\.py)`: ((?:`test_\w+`(?:, )?)+)", text)
    missing = [
        f"{file}::{name}"
        for file, names in cited
        for name in re.findall(r"test_\w+", names)
        if not re.search(rf"def {name}\(", (ROOT / file).read_text())
    ]

    assert len(cited) > 10
    assert text.count("`test_") == sum(names.count("`test_") for _, names in cited)
    assert missing == []


# -- What must hold of all of them ---------------------------------------------------------------------


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_link_leads_somewhere(document: Path) -> None:
    links = re.findall(r"\]\(([^)\s]+)\)", document.read_text())

    assert [link for link in links if not _leads_somewhere(document, link)] == []


def _leads_somewhere(document: Path, link: str) -> bool:
    if re.match(r"\w+:", link):
        return True
    file, _, anchor = link.partition("#")
    target = (document.parent / file) if file else document
    if not target.exists():
        return False
    headings = re.findall(r"^#+ (.*)$", target.read_text(), re.MULTILINE) if anchor else []
    return not anchor or anchor in {_anchor(heading) for heading in headings}


def _anchor(heading: str) -> str:
    return re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-")
