"""What a job has kept and what a subject shows, for those who look on: lists, counts, exports."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from telecine.engine.leases.task_inputs import published, shelved
from telecine.errors import NotFound
from telecine.facts import SECOND, Instant, Millis, StoredArtifact
from telecine.store import Ask, Steps

__all__ = ["ArtifactCount", "carried", "of_job", "of_version", "published", "tally"]


YOUNG = 30 * SECOND  # no transaction that keeps something lasts longer


@dataclass(frozen=True, slots=True, kw_only=True)
class ArtifactCount:
    """How many artifacts of one stage begin with the same folder, and since when."""

    stage: str
    folder: str
    files: int
    bytes: int
    first_at: Instant
    last_at: Instant


def of_job(job_id: int, stages: Sequence[str]) -> Steps[list[StoredArtifact]]:
    """All that these stages have kept so far; none named: all."""
    rows = yield Ask("kept_by_job", {"job_id": job_id, "stages": list(stages), "all_stages": not stages})
    return [shelved(row) for row in rows]


def since(job_id: int, stages: Sequence[str], after: int) -> Steps[list[StoredArtifact]]:
    """What these stages have kept since the artifact with this id, and once more what is young."""
    asked = {"job_id": job_id, "stages": list(stages), "after": after, "young": YOUNG}
    return [shelved(row) for row in (yield Ask("kept_since", asked))]


def carried(job_id: int) -> Steps[list[StoredArtifact]]:
    """What a job's published version has taken over from another one; none while it is not published."""
    rows = yield Ask("carried_by_job", {"job_id": job_id})
    return [shelved(row) for row in rows]


def of_version(version_id: int) -> Steps[list[StoredArtifact]]:
    """What one version of a subject consists of, shown or not."""
    rows = yield Ask("kept_of_version", {"version": version_id})
    return [shelved(row) for row in rows]


def named(version_id: int, names: Sequence[str]) -> Steps[dict[tuple[str, str], str]]:
    """The keys of some files of a version, by stage and name; there may be thousands of others."""
    rows = yield Ask("watch_names", {"version": version_id, "names": list(names)})
    return {(row["stage"], row["name"]): row["key"] for row in rows}


def tally(job_id: int) -> Steps[tuple[ArtifactCount, ...]]:
    """Counts instead of rows: a job may have thousands of artifacts, and is looked at every second."""
    rows = yield Ask("tally", {"job_id": job_id})
    return tuple(ArtifactCount(**{name: row[name] for name in ArtifactCount.__slots__}) for row in rows)


def worked(job_id: int) -> Steps[Millis]:
    """For how long anybody has worked on a job: the time in which nobody did is left out."""
    [row] = yield Ask("worked", {"job_id": job_id})
    return int(row["ms"])


def result_of(job_id: int, stage: str) -> Steps[str]:
    """What the only task of a stage returned, as JSON."""
    rows = yield Ask("result_of", {"job_id": job_id, "stage": stage})
    if not rows or rows[0]["result"] is None:
        raise NotFound(f"stage {stage!r} of job {job_id} has no result yet")
    return str(rows[0]["result"])
