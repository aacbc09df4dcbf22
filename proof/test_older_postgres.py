"""The whole contract of the database on the oldest PostgreSQL that the wheel has."""

import os
import subprocess
import sys

from tests.support.postgres import OLDEST, shared_postgres

# Without -q: the settings of the project have one, and with two there is no line that says how many have passed.
CONTRACT = ["-m", "pytest", "tests/contract", "-k", "postgres or pooler"]


def test_the_contract_holds_on_an_older_postgresql() -> None:
    with shared_postgres(OLDEST) as url:
        ran = subprocess.run(
            [sys.executable, *CONTRACT],
            env={**os.environ, "TELECINE_TEST_POSTGRES_URL": url},
            capture_output=True,
            text=True,
            check=False,
        )

    assert ran.returncode == 0, ran.stdout[-5000:]
    assert " passed" in ran.stdout
