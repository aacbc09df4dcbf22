"""Media children of real workers: they end with their job, their lease and their worker."""

from pathlib import Path
from typing import Any

from telecine.engine import Engine
from tests.fault.worker_processes import BRISK, Crew, ended, lives, on, outcomes, result, rows, until
from tests.support.flows import filming

DOUBLE = str(Path(__file__).with_name("fake_child.py"))


def a_spec(workers: Crew, **order: Any) -> dict[str, Any]:
    return {"folder": str(workers.folder), "program": DOUBLE, "order": order}


async def a_family(engine: Engine, workers: Crew, *, alone: bool = False) -> tuple[int, list[int]]:
    """A job whose media child, and its child, do not end by themselves."""
    await engine.jobs.register(filming)
    job = await engine.jobs.submit("filming", a_spec(workers, do="hang", stubborn=True, alone=alone))
    workers.start("ann")
    [file] = await until(lambda: workers.files("family"))
    family = [int(pid) for pid in file.read_text().split()]
    assert all(lives(pid) for pid in family)
    return job.job_id, family


async def all_gone(family: list[int], within: float = 5.0) -> None:
    await until(lambda: not [pid for pid in family if lives(pid)], within=within)


def test_a_killed_worker_takes_its_media_children_along(sqlite_url: str, workers_on_sqlite: Crew) -> None:
    async def play(engine: Engine) -> None:
        _, family = await a_family(engine, workers_on_sqlite, alone=True)

        workers_on_sqlite.workers["ann"].kill()

        await all_gone(family, within=2.0)

    on(sqlite_url, play)


def test_a_cancelled_job_ends_its_media_child_although_it_ignores_it(url: str, workers: Crew) -> None:
    async def play(engine: Engine) -> None:
        job_id, family = await a_family(engine, workers)

        await engine.jobs.cancel(job_id)

        assert await ended(engine, job_id) == ["cancelled"]
        await all_gone(family)

    on(url, play)


def test_a_lost_lease_ends_its_media_child_at_once(sqlite_url: str, workers_on_sqlite: Crew) -> None:
    async def play(engine: Engine) -> None:
        _, family = await a_family(engine, workers_on_sqlite)
        [task] = await rows(engine, "select id, token from task")

        await engine.release([(task["id"], task["token"])])

        await all_gone(family, within=BRISK["beat"] + 3.0)

    on(sqlite_url, play)


def test_a_worker_that_is_told_to_leave_now_leaves_no_media_child(sqlite_url: str, workers_on_sqlite: Crew) -> None:
    async def play(engine: Engine) -> None:
        job_id, family = await a_family(engine, workers_on_sqlite)
        ann = workers_on_sqlite.workers["ann"]

        ann.terminate()
        await until(lambda: "draining" in workers_on_sqlite.log())
        ann.terminate()

        await until(lambda: ann.poll() is not None)
        assert [pid for pid in family if lives(pid)] == []
        assert await outcomes(engine, job_id) == ["released"]

    on(sqlite_url, play)


def test_how_a_media_child_ended_is_how_its_job_failed_and_stands_in_its_log(url: str, workers: Crew) -> None:
    async def play(engine: Engine) -> None:
        await engine.jobs.register(filming)
        error = {"code": "no_video", "message": "there is no picture in it", "permanent": True}
        refused = await engine.jobs.submit("filming", a_spec(workers, do="refuse", error=error))
        died = await engine.jobs.submit("filming", a_spec(workers, do="die", code=3, printed="a last word"))
        good = await engine.jobs.submit("filming", a_spec(workers, do="copy", size=0))
        workers.start("ann")

        assert await ended(engine, refused.job_id, died.job_id) == ["failed", "failed"]

        why = [(await engine.queries.job(job.job_id)).error or {} for job in (refused, died)]
        assert [(item["code"], item["message"][:24]) for item in why] == [
            ("no_video", "there is no picture in i"),
            ("child_died", "the media child ended wi"),
        ]
        [step] = await engine.queries.logs(died.job_id, kind="step")
        assert (step.message, step.level) == (f"python -I {DOUBLE}", "error")
        assert step.data is not None
        assert (step.data["exit_code"], step.data["tail"], step.data["order"]["do"]) == (3, "a last word", "die")
        assert good.created

    on(url, play)


def test_the_scratch_folder_is_where_a_media_child_works(sqlite_url: str, workers_on_sqlite: Crew) -> None:
    workers = workers_on_sqlite

    async def play(engine: Engine) -> None:
        await engine.jobs.register(filming)
        job = await engine.jobs.submit("filming", a_spec(workers, do="look"))
        workers.start("ann", media_nice=3)

        assert await ended(engine, job.job_id) == ["completed"]

        seen = await result(engine, job.job_id)
        assert Path(seen["folder"]).is_relative_to(workers.folder / "scratch")
        assert (seen["files"], seen["nice"]) == ([0, 1, 2, seen["channel"]], 3)

    on(sqlite_url, play)
