"""The page about events says what the code says."""

import json
import re
from pathlib import Path

from telecine.facts import FINAL, Mode, State, Status
from tests.api.chain_words import ANY
from tests.support.docs import ROOT, blocks_of

PAGE = ROOT / "docs" / "events.md"
SOURCE = ROOT / "src" / "telecine"
FAMILIES = "job|task|stage|subject|worker|flow|audit"
# Names that look like kinds and are none: findings of the audit, columns.
NO_KINDS = re.compile(r"\.(flow_id|started_at|state|waits|kept|lease|parked|stage|token|worker)$")


def kinds_in(path: Path) -> set[str]:
    found = re.findall(rf"""["']((?:{FAMILIES})\.[a-z_]+)["']""", path.read_text())
    return {kind for kind in found if not NO_KINDS.search(kind)}


def test_every_kind_that_the_engine_says_is_on_the_page() -> None:
    files = [*SOURCE.glob("engine/*.py"), *SOURCE.glob("store/sql/postgres/*.sql"), *SOURCE.glob("api/live/*.py")]
    written_out = set().union(*(kinds_in(path) for path in files))
    made_up = {
        *(f"job.{status}" for status in Status if status.is_final),
        *(f"task.{state}" for state in FINAL - {State.SKIPPED}),
        *(f"stage.{state}" for state in (FINAL | {State.READY})),
        *(f"worker.{mode}" for mode in (*Mode, "revoked", "online", "offline", "busy", "idle")),
    }
    text = PAGE.read_text()

    assert len(written_out) > 15
    assert sorted(kind for kind in written_out | made_up if f"`{kind}`" not in text) == []


def test_the_examples_of_the_socket_are_what_it_says() -> None:
    [block] = [block for block in blocks_of(PAGE) if block.language == "json"]
    examples = [json.loads(line) for line in block.text.splitlines()]

    for example in examples:
        ANY.validate_python(example)

    assert len(examples) == 8
