"""Jobs without rows are frozen: decision 0015 lists every place that knows them, and there is no other."""

import re
from pathlib import Path

from telecine.store.statements import load

ROOT = Path(__file__).parents[2]
ENGINE = ROOT / "src" / "telecine" / "engine"
RECORD = (ROOT / "docs" / "decisions" / "0015-jobs-without-rows.md").read_text()
KNOWS = re.compile(r"\browless\b|\blone\b|\bjob_task\b|flow_id is (not )?null|\b[tgp]\.flow_id\b")
# They write only jobs that are their task, under columns that no pattern tells apart.
WRITERS = {"submit_lone", "submit_lone_ring"}


def test_one_module_of_the_engine_knows_jobs_without_rows() -> None:
    found = {str(path.relative_to(ENGINE)) for path in ENGINE.rglob("*.py") if "rowless" in path.read_text()}

    assert found == {"jobs/job_rows.py"}


def test_the_record_lists_every_statement_that_knows_them() -> None:
    lines = [line for line in RECORD.splitlines() if line.startswith("| statements")]
    listed = [name for line in lines for name in re.findall(r"`([a-z_]+)`", line)]

    knowing = {
        name
        for name, one in load("postgres").items()
        if KNOWS.search(one.text) or "rowless" in one.params or name in WRITERS
    }
    assert len(lines) == 3
    assert sorted(listed) == sorted(knowing)
