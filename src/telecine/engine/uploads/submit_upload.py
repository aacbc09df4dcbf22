"""The one transaction that makes a complete upload the source of a job."""

from __future__ import annotations

from typing import TYPE_CHECKING

from telecine.engine.jobs import job_rows
from telecine.engine.jobs.submit import Submission, Submitted, submit
from telecine.engine.maintenance.artifact_gc import put_freed
from telecine.engine.uploads.records import How, Upload, done, held
from telecine.facts import JobId
from telecine.graph import Graph
from telecine.store import Ask, Steps

if TYPE_CHECKING:
    from telecine.engine import Engine


async def submit_upload(
    engine: Engine, upload: Upload, sha256: str, submission: Submission, before: JobId | None
) -> None:
    """Submit a job for the upload, exactly once however often and wherever this is called.

    `before` is a job that has made the same already: then that is the result, and these bytes are freed.
    """
    flow = await engine.jobs.flow_row(submission.flow)
    lanes = await engine._store.run(lambda: _submit_upload(upload, sha256, before, (submission, *flow)))
    engine.bell.ring(lanes)


def _submit_upload(
    upload: Upload, sha256: str, before: JobId | None, wanted: tuple[Submission, int, Graph]
) -> Steps[frozenset[str]]:
    if (yield from held(upload.id)) is None:
        return frozenset()  # another process did it, or refused it
    assert wanted[0].subject is not None
    kind, subject_id = wanted[0].subject
    if before is not None and (yield Ask("gone_at", {"kind": kind, "id": subject_id})):
        before = None  # deleted since we looked: these bytes are the only ones
    answer = Submitted(before, False) if before is not None else None
    if answer is None:
        answer, subject_id = yield from _submitted(wanted, subject_id)
    how: How = "submitted" if answer.created else "continued" if before is None else "made before"
    if not answer.created:
        yield from put_freed([f"uploads/{upload.id}/"])
    yield from done(upload.id, sha256, (answer.job_id, subject_id), how)
    return answer.lanes if answer.created else frozenset()


def _submitted(wanted: tuple[Submission, int, Graph], subject_id: str) -> Steps[tuple[Submitted, str]]:
    """A new job, or an unfinished one that does the same, perhaps under another name; and of which subject.

    One that winds down will not do it: it is left aside.
    """
    [answer] = yield from submit([wanted])
    if answer.created:
        return answer, subject_id
    [twin] = yield from job_rows.hold([answer.job_id])
    if twin["outcome"] is None and not (twin["cancel_asked"] or twin["failing"] or twin["stopped"]):
        return answer, str(twin["subject_id"])
    [answer] = yield from submit([(wanted[0]._replace(dedupe_key=None), *wanted[1:])])
    return answer, subject_id
