"""The description of the API in a real browser: all of it, from this server alone."""

from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest

from tests.browser.rig import describe
from tests.e2e.cli import PATIENCE, Shell, ended
from tests.e2e.test_server_stop import start


@pytest.fixture
def shell(tmp_path: Path, sqlite_url: str) -> Shell:
    return Shell.prepare(tmp_path, sqlite_url)


def test_the_page_shows_every_operation_and_asks_nobody_else(shell: Shell, tmp_path: Path) -> None:
    server, serving = start(shell, tmp_path / "server.log")
    address = str(serving["address"])
    with ended(server):
        # The first to ask has it written, which on a busy machine takes longer than the usual five seconds.
        known = httpx.get(f"{address}/openapi.json", timeout=PATIENCE).json()["paths"]
        seen = describe(address, "submit_job", tmp_path / "docs.png")

    assert seen.done["wrong"] == []
    assert {urlsplit(one).netloc for one in seen.done["asked"] if not one.startswith("data:")} == {
        urlsplit(address).netloc
    }
    assert seen.opened == {"operations": sum(len(ways) for ways in known.values()), "found": 1}
    told = "curl -X POST -H \"Authorization: Bearer $TELECINE_KEY\" -H 'Content-Type: application/json'"
    assert told in seen.done["shown"]
    assert "Idempotency-Key" in seen.done["shown"]
