"""The four words for a video, and the five steps of its newest job."""

from dataclasses import replace

import pytest

from telecine.apps.transcode.videos.status import VideoStep, beside, status_of, step_of, steps_of
from telecine.engine.queries.view_models import JobLine, StageView

JOB = JobLine(
    id=7, flow="transcode", owner="", subject=("video", "a"), status="pending", priority=5, progress=0.4,
    cancel_asked=False, generation=1, version=1, warning_count=0, error=None, run_at=None, created_at=0,
    started_at=None, ended_at=None,
)  # fmt: skip


def job(status: str) -> JobLine:
    return replace(JOB, status=status)


@pytest.mark.parametrize(
    ("version", "opened", "newest", "word"),
    [
        (None, "pending", "pending", "pending"),
        (None, "validating", "validating", "processing"),
        (None, "uploading_outputs", "uploading_outputs", "processing"),
        (None, None, "failed", "failed"),
        (None, None, "cancelled", "failed"),
        (None, None, "completed", "pending"),  # of another flow: it published nothing
        (None, None, None, "failed"),  # put away
        (None, "processing", "failed", "processing"),  # an older one still runs
        (None, "pending", "failed", "pending"),
        (1, "processing", "processing", "ready"),
        (1, "pending", "pending", "ready"),
        (1, None, "failed", "ready"),
        (1, None, None, "ready"),
    ],
)
def test_a_published_video_is_ready_and_else_its_jobs_decide(
    version: int | None, opened: str | None, newest: str | None, word: str
) -> None:
    found = status_of(version, job(opened) if opened else None, job(newest) if newest else None)

    assert found == word


@pytest.mark.parametrize(
    ("version", "opened", "newest", "words"),
    [
        (1, "processing", "processing", "re-transcoding 40 %"),
        (1, "pending", "pending", "re-transcode waits"),
        (1, None, "failed", "re-transcode failed"),
        (1, None, "cancelled", "re-transcode cancelled"),
        (1, None, "completed", None),
        (1, None, None, None),
        (None, "processing", "processing", None),
    ],
)
def test_what_happens_beside_a_video_that_plays_is_a_second_fact(
    version: int | None, opened: str | None, newest: str | None, words: str | None
) -> None:
    found = beside(version, job(opened) if opened else None, job(newest) if newest else None)

    assert found == words


def stages(**states: str) -> list[StageView]:
    names = ["validate", "plan", "fetch", "audio", "video", "poster", "sprites", "package", "verify", "publish"]
    return [
        StageView(
            name=name, title=name, phase="processing", state=states.get(name, "new"), needs=(), optional=False,
            fan_out=False, total=1, counts={}, progress=0, started_at=None, ended_at=None,
        )
        for name in names
    ]  # fmt: skip


def test_a_stage_that_is_ready_and_was_never_taken_up_has_not_begun() -> None:
    assert {step.status for step in steps_of(stages(validate="ready"))} == {"pending"}

    tried = [replace(stages(validate="ready")[0], started_at=1)]
    assert steps_of(tried)[0] == VideoStep("probe", "in_progress")
    assert steps_of(stages(validate="done", plan="ready"))[0] == VideoStep("probe", "in_progress")


def test_steps_are_as_far_as_their_stages() -> None:
    probed = {"validate": "done", "plan": "done", "fetch": "done", "poster": "skipped", "sprites": "skipped"}

    assert {step.status for step in steps_of(stages())} == {"pending"}
    assert steps_of(stages(**probed, audio="done", video="running")) == (
        VideoStep("probe", "completed"),
        VideoStep("thumbnail", "skipped"),
        VideoStep("transcode", "in_progress"),
        VideoStep("master_playlist", "pending"),
        VideoStep("finalize", "pending"),
    )
    assert steps_of(stages(**probed, audio="done", video="error"))[2] == VideoStep("transcode", "failed")


def test_the_present_step_is_that_of_the_first_stage_with_something_to_do() -> None:
    ended = {stage.name: "done" for stage in stages()}

    found = [step_of(stages()), step_of(stages(**{**ended, "sprites": "running"})), step_of(stages(**ended))]

    assert found == ["probe", "thumbnail", None]
