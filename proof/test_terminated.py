"""PostgreSQL ends a connection every 30 ms, or restarts twice a second: of 2,000 jobs each is done, once, none fails.

Runs on the releases of PostgreSQL that the tests bring along, and on those that are installed in the usual place.
"""

from pathlib import Path

import pytest

from tests.fault.terminations import Disturbance, IdleTimeout, Restarter, Terminator, disturbed
from tests.support.postgres import NEWEST, OLDEST, PrivatePostgres

JOBS = 2_000
WITHIN = 900.0
INSTALLED = sorted(Path("/usr/lib/postgresql").glob("*/bin"))
# Release, and where its programs are if not in the wheel.
RELEASES: dict[str, tuple[int, Path | None]] = {
    str(NEWEST): (NEWEST, None),
    str(OLDEST): (OLDEST, None),
    **{path.parent.name: (int(path.parent.name), path) for path in INSTALLED},
}
WAYS = [(Terminator(0.03), True), (Terminator(0.03), False), (Restarter(0.5), True), (IdleTimeout(15), True)]


@pytest.mark.parametrize("release", RELEASES)
@pytest.mark.parametrize("delay", [None, 0.05], ids=["at once", "the FIN comes late"])
@pytest.mark.parametrize(("disturbance", "swift"), WAYS, ids=["ended", "ended on asyncio", "restarted", "idle"])
def test_every_job_is_done_while_postgresql_ends_connections(
    tmp_path: Path, release: str, disturbance: Disturbance, delay: float | None, swift: bool
) -> None:
    disturbance.count = 0
    number, programs = RELEASES[release]
    with PrivatePostgres(tmp_path / "server", release=number, programs=programs) as server:
        logs = tmp_path / "logs"
        logs.mkdir()

        report = disturbed(server, logs, disturbance, jobs=JOBS, delay=delay, within=WITHIN, swift=swift)

    print(report)
    assert report.outcomes == {"completed": JOBS}, report
    assert report.dead_workers == [], report
    assert (report.done_twice, report.findings) == (0, []), report
    assert report.tracebacks == 0, report
