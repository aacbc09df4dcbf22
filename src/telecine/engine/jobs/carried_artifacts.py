"""Artifacts of an older version of a subject, which a new one takes over by reference.

Their rows are held while the outcome that names them is settled: retention cannot free them in between, and once
the new version has rows of its own that name the same bytes, it need not care what becomes of the old ones.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from telecine.facts import Done, Fact, Failed, LeaseOutcome
from telecine.store import Ask, Row, Steps

Carried = Mapping[int, tuple[str, str]]  # artifact -> the subject that it was published for
NOTHING: Carried = {}


def hold(words: Sequence[LeaseOutcome]) -> Steps[Carried]:
    """The artifacts that these words carry over, as far as they are there."""
    ids = {id_ for word in words if isinstance(word.fact, Done) for id_ in word.fact.carry}
    if not ids:
        return NOTHING
    rows = yield Ask("carry_hold", {"ids": sorted(ids)})
    return {row["id"]: (row["kind"], row["subject_id"]) for row in rows}


def checked(fact: Fact, job: Row, held: Carried) -> Fact:
    """An outcome that carries over what is gone, or is somebody else's, fails for good."""
    if not isinstance(fact, Done) or not fact.carry:
        return fact
    subject = (job["subject_kind"], job["subject_id"])
    lost = next((id_ for id_ in fact.carry if held.get(id_) != subject), None)
    if lost is None:
        return fact
    why = f"artifact {lost} cannot be carried over: it belongs to no version of this job's subject (any more)"
    return Failed(why, code="bad_carry", permanent=True)
