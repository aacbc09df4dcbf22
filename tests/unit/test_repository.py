"""The rules of the repository that no linter knows."""

import re
from pathlib import Path

import pytest

from tests.conftest import LONGEST

ROOT = Path(__file__).parents[2]
LOCKS = sorted((ROOT / "requirements").glob("*.lock"))
NPM_LOCKS = sorted(ROOT.glob("tests/**/package-lock.json"))
MAX_LINES = 300


def test_no_source_or_test_file_is_longer_than_300_lines() -> None:
    files = [
        path
        for folder in ("src", "tests")
        for kind in ("*.py", "*.sql")
        for path in (ROOT / folder).rglob(kind)
        if path.parent.name != "migrations"  # one file per step of the schema, never edited again
    ]

    lengths = {str(path.relative_to(ROOT)): _length(path.read_text()) for path in files}

    assert lengths
    assert {name: length for name, length in lengths.items() if length > MAX_LINES} == {}


def _length(text: str) -> int:
    """Lines without imports: long names of packages do not make a module longer."""
    imports = re.compile(r"^(?:from [\w.]+ )?import (?:\((?:.|\n)*?\)|.*)\n", re.MULTILINE)
    return len(imports.sub("", text).splitlines())


@pytest.mark.parametrize("lock", [*LOCKS, *NPM_LOCKS], ids=lambda path: path.name)
def test_a_lock_file_names_no_registry_and_no_place_on_a_machine(lock: Path) -> None:
    address = re.compile(r"https?:|file:|index-url|find-links|(^|[\s=@'\"])(/|~/|[A-Za-z]:\\)")

    found = [line for line in lock.read_text().splitlines() if address.search(line)]

    assert found == []


@pytest.mark.parametrize("lock", LOCKS, ids=lambda path: path.name)
def test_every_locked_package_is_pinned_and_hashed(lock: Path) -> None:
    entries = re.split(r"\n(?=[a-z])", lock.read_text())[1:]

    loose = [entry.splitlines()[0] for entry in entries if "==" not in entry or "--hash=sha256:" not in entry]

    assert entries
    assert loose == []


def test_what_is_begun_first_is_there() -> None:
    gone = [name for name in LONGEST if not (ROOT / "tests" / name).is_file()]

    assert gone == []
