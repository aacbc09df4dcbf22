"""Fixtures for every kind of test: real databases, none of them mocked."""

import os
from collections.abc import Iterator
from pathlib import Path

import hypothesis
import pytest

from tests.support.postgres import fresh_schema, shared_postgres
from tests.support.redis import shared_redis
from tests.support.thorough import THOROUGH

# A busy machine is no fault of the code: no test passes or fails by time.
hypothesis.settings.register_profile("telecine", deadline=None)
hypothesis.settings.load_profile("telecine")

# Files are handed out in this order when several are run side by side; the others follow. A long one that begins last
# would be waited for by all.
LONGEST = (
    "e2e/test_scenario.py", "contract/test_interleavings.py", "media/test_partition.py", "api/test_openapi_fuzz.py",
    "media/test_transcode_cli.py", "e2e/test_docs.py", "api/test_uploads_clients.py", "fault/test_remote_workers.py",
    "fault/test_readers.py", "fault/test_postman.py", "fault/test_redis.py", "fault/test_remote_film.py",
    "fault/test_terminated_connections.py", "fault/test_terminated_remote.py", "e2e/test_worker_demo.py",
    "api/test_playback.py", "media/test_browser_transcode.py", "media/test_kills.py", "media/test_preview.py",
    "media/test_transcode.py", "contract/test_mutants.py", "contract/test_pooler.py", "contract/test_patience.py",
    "contract/test_stateful.py", "e2e/test_cli.py", "e2e/test_tracing.py", "e2e/test_older_postgres.py",
    "e2e/test_large_files.py", "e2e/test_pooler_without_server.py", "e2e/test_cli_doctor_media.py",
    "fault/test_killed_worker.py", "fault/test_uploads.py", "fault/test_crowds_and_silence.py",
    "fault/test_stubborn_handlers.py", "fault/test_lost_database.py", "api/test_watch.py", "media/test_audio.py",
    "media/test_refusals.py", "media/test_sound_extent.py", "media/test_sources.py", "media/test_browser.py",
)  # fmt: skip
HERE = Path(__file__).parent


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if not THOROUGH and not any("::" in one for one in config.args):
        left_out = [item for item in items if item.get_closest_marker("thorough")]
        items[:] = [item for item in items if not item.get_closest_marker("thorough")]
        config.hook.pytest_deselected(items=left_out)
    turn = {HERE / name: place for place, name in enumerate(LONGEST)}
    items.sort(key=lambda item: turn.get(item.path, len(turn)))


@pytest.fixture(scope="session")
def postgres_url() -> Iterator[str]:
    """One PostgreSQL for the whole run, started on first use."""
    given = os.environ.get("TELECINE_TEST_POSTGRES_URL")
    if given:
        yield given
        return
    with shared_postgres() as url:
        yield url


@pytest.fixture(scope="module")
def postgres_schema_url(postgres_url: str) -> Iterator[str]:
    """A fresh schema per test module, as the search path of its URL."""
    with fresh_schema(postgres_url) as url:
        yield url


@pytest.fixture
def sqlite_url(tmp_path: Path) -> str:
    """A database file that does not exist yet."""
    return f"sqlite:///{tmp_path}/telecine.db"


@pytest.fixture(scope="session")
def redis_url() -> Iterator[str]:
    """One Redis for the whole run, started on first use."""
    with shared_redis() as url:
        yield url
