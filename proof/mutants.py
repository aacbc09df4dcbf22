"""Guards taken away one by one: each must be missed by a test, else the test is missing.

A mutant is a copy of the source tree in which one text was replaced. The tests named beside it run against the
copy; if none of them fails, the mutant has survived. A text that is no longer found is an error: the guard has
moved, and its mutant must follow.

    python -m proof.mutants            all of them
    python -m proof.mutants token      those whose name contains the word
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from proof.mutant_list import MUTANTS, QUICK, Mutant
from tests.support.postgres import fresh_schema, shared_postgres

ROOT = Path(__file__).parents[1]
PATIENCE = 300.0
# A mutant that the database or Python does not even understand proves nothing.
NONSENSE = re.compile(
    r"syntax error|SyntaxError|IndentationError|NameError|no such column|does not exist|is ambiguous|near \""
)


@dataclass(frozen=True)
class Verdict:
    mutant: Mutant
    word: str  # killed, survived, nonsense, hung
    seconds: float
    output: str

    @property
    def is_good(self) -> bool:
        return self.word == "killed"


def find(mutant: Mutant, source: Path = ROOT / "src") -> dict[Path, str]:
    """The files of a mutant with their new text; what is replaced must be there exactly once."""
    changed: dict[Path, str] = {}
    for file in mutant.files:
        path = source / "telecine" / file
        text = path.read_text()
        if (found := text.count(mutant.old)) != 1:
            raise LookupError(f"mutant {mutant.name!r}: its text is {found} times in {file}")
        changed[path] = text.replace(mutant.old, mutant.new)
    return changed


@contextlib.contextmanager
def mutated(mutant: Mutant) -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="telecine-mutant-") as folder:
        source = Path(folder) / "src"
        # With what is compiled, which is good for files of the same time and size: all but the changed ones.
        shutil.copytree(ROOT / "src", source)
        for path, text in find(mutant, source).items():
            path.write_text(text)
        yield source


def judge(mutant: Mutant, postgres_url: str) -> Verdict:
    began = time.monotonic()
    with mutated(mutant) as source, fresh_schema(postgres_url) as url:
        environment = {
            **os.environ,
            "PYTHONPATH": str(source),
            "PYTHONDONTWRITEBYTECODE": "1",
            "TELECINE_TEST_POSTGRES_URL": url.split("&search_path")[0],
            "TELECINE_MUTATED": str(source),
            "TELECINE_TEST_THOROUGH": "1",
        }
        command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", *mutant.tests]
        try:
            run = subprocess.run(
                command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False, timeout=PATIENCE
            )
        except subprocess.TimeoutExpired:
            return Verdict(mutant, "hung", PATIENCE, "")
    word = {0: "survived", 1: "killed"}.get(run.returncode, "nonsense")
    if word == "killed" and not mutant.noisy and NONSENSE.search(run.stdout):
        word = "nonsense"
    return Verdict(mutant, word, time.monotonic() - began, run.stdout[-4_000:] + run.stderr[-1_000:])


def judge_all(mutants: list[Mutant], postgres_url: str, *, at_once: int = 2) -> list[Verdict]:
    with ThreadPoolExecutor(at_once) as pool:
        return list(pool.map(lambda mutant: judge(mutant, postgres_url), mutants))


def main(words: list[str]) -> int:
    chosen = [mutant for mutant in MUTANTS if all(word in mutant.name for word in words)]
    with shared_postgres() as url:
        verdicts = judge_all(chosen, url)
    for verdict in verdicts:
        print(f"{verdict.word:9} {verdict.seconds:5.1f} s  {verdict.mutant.name}")
        if not verdict.is_good:
            print(verdict.output)
    killed = sum(verdict.is_good for verdict in verdicts)
    print(f"{killed} of {len(verdicts)} mutants killed")
    return 0 if killed == len(verdicts) else 1


__all__ = ["MUTANTS", "QUICK", "Mutant", "Verdict", "find", "judge", "judge_all"]

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
