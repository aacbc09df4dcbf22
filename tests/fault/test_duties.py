"""A server whose database is killed says so once for all its duties, and once when it is back."""

from pathlib import Path

import httpx

from tests.fault.server_processes import outpost, wait_for
from tests.support.postgres import PrivatePostgres


def test_a_lost_database_is_one_line_and_its_return_another(tmp_path: Path) -> None:
    with PrivatePostgres(tmp_path) as database, outpost(tmp_path, database.url, watch=str(tmp_path / "films")) as post:
        (tmp_path / "films").mkdir()
        post.serve()
        log = tmp_path / "server.log"

        database.kill()
        wait_for(
            lambda: httpx.get(f"{post.url}/health", timeout=30.0).status_code == 503, "the server misses its database"
        )
        wait_for(lambda: "does not answer" in log.read_text(), "the log says so")
        for _ in range(20):  # meanwhile each duty looks several times
            httpx.get(f"{post.url}/api/health", timeout=30.0)
        database.start()
        wait_for(lambda: "answers again" in log.read_text(), "the log says that it is back")
        wait_for(lambda: httpx.get(f"{post.url}/health", timeout=30.0).status_code == 200, "the server is able again")
        lines = [line for line in log.read_text().splitlines() if "telecine.engine.maintenance.background" in line]

    assert ["does not answer, trying on" in line for line in lines] == [True, False]
    assert "answers again after" in lines[1]
