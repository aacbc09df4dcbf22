"""New jobs: one or thousands in one transaction, found again by key, waiting for others if asked."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from telecine.engine.jobs.new_jobs import Alike, JobBatch, JobTemplate, begin
from telecine.errors import BadSpec, KeyReused, NotAllowed, NotFound
from telecine.facts import PRIORITIES, Instant, JobId, Json
from telecine.graph import Graph
from telecine.json_limits import check_json
from telecine.json_text import dumps, exact, is_storable
from telecine.store import Ask, Reserve, Steps, Write

MAX_SPEC_CHARS = 1_000_000
LATEST: Instant = 1 << 53


class Submission(NamedTuple):
    """What somebody wants done, by name. `key` makes a repeat harmless; `dedupe_key` joins an unfinished twin.

    `within`: whose jobs it may come after, and whose subjects it may be about; None: anybody's. `batch`: how many were
    submitted together under keys that belong together, so that a part of them is not taken for a repeat. `told`: who
    shall be told of it, so that a repeat says the same.

    A tuple, since there may be thousands, and it is made in a quarter of a dataclass's time.
    """

    flow: str
    spec: Json = None
    owner: str = ""
    subject: tuple[str, str] | None = None
    priority: int | str = "normal"
    run_at: Instant | None = None
    after: tuple[int, ...] = ()
    skip: tuple[str, ...] = ()
    key: str | None = None
    dedupe_key: str | None = None
    within: str | None = None
    batch: int = 0
    told: str = ""


class Submitted(NamedTuple):
    """`created` is false when an earlier job answered: same key, or a twin that has not finished."""

    job_id: JobId
    created: bool
    lanes: frozenset[str] = frozenset()


def priority_of(value: int | str) -> int:
    """A number from 0 (background) to 10 (critical), or one of the five names."""
    if isinstance(value, str):
        if value in PRIORITIES:
            return PRIORITIES[value]
        if value.isdigit():
            value = int(value)
        else:
            raise BadSpec(f"priority {value!r} is unknown; use 0 to 10 or {', '.join(PRIORITIES)}")
    if type(value) is not int or not 0 <= value <= 10:  # the scale of the contract
        raise BadSpec(f"priority {value} is out of range; use 0 (background) to 10 (critical)")
    return value


def checked_time(run_at: Instant | None) -> Instant | None:
    """A moment in milliseconds since 1970 that every database can hold."""
    if run_at is not None and (type(run_at) is not int or not 0 <= run_at < LATEST):
        raise BadSpec(f"run_at {run_at} is no moment in milliseconds since 1970")
    return run_at


Wanted = Sequence[tuple[Submission, int, Graph]]


def submit(wanted: Wanted) -> Steps[list[Submitted]]:
    """Create the jobs; each comes with the id of its flow row and that row's graph."""
    if len(wanted) == 1 and (alone := _begun_alone(*wanted[0])) is not None:
        return (yield from _submit_alone(wanted[0][0], alone))
    priorities = [_checked(one, graph) for one, _, graph in wanted]
    known: dict[int, int] = {}  # by place, the job that is the answer already
    outcomes: Mapping[int, str | None] = {}
    plain = not any(one.key or one.dedupe_key or one.after or one.subject or one.told for one, _, _ in wanted)
    if not plain:
        yield from _find_twins(wanted, known)
        outcomes = yield from _known(wanted)
    fresh = [place for place in range(len(wanted)) if place not in known] if known else range(len(wanted))
    ids: list[int] = (yield Reserve("job", len(fresh))) if fresh else []
    numbered = dict(zip(fresh, ids, strict=True))
    if not plain:
        yield from _take_keys(wanted, numbered, known)
    batch = _batch(wanted, priorities, {place: id_ for place, id_ in numbered.items() if place not in known}, outcomes)
    yield from batch.write(alone=plain)
    if not plain:
        yield from _introduce([one for place, one in enumerate(wanted) if place not in known])
    lanes = frozenset(batch.lanes)
    answers = numbered | known
    return [Submitted(JobId(answers[place]), place not in known, lanes) for place in range(len(wanted))]


def _begun_alone(one: Submission, flow_id: int, graph: Graph) -> JobTemplate | None:
    """How it begins, if it is one plain task, with nothing around it that has to be looked up or waited for."""
    if one.subject or one.run_at is not None or one.after or one.skip or one.key or one.dedupe_key or one.told:
        return None
    begun = begin(graph, Alike(flow_id, (), False, _checked(one, graph), True))
    return None if begun.lone is None else begun


def _submit_alone(one: Submission, begun: JobTemplate) -> Steps[list[Submitted]]:
    """The way of most: it takes half the time when none of the rest is asked about."""
    spec = spec_text(one.spec)
    [job_id] = yield Reserve("job", 1)
    yield begun.write(job_id, one.owner, spec, whole=True)
    return [Submitted(JobId(job_id), True, begun.lanes)]


def _introduce(wanted: Wanted) -> Steps[None]:
    """A subject exists as soon as somebody wants something of it. In their order: so nobody waits in a circle."""
    owners = {one.subject: one.owner for one, _, _ in reversed(wanted) if one.subject is not None}
    if not owners:
        return
    rows = [{"kind": kind, "id": id_, "owner": owner} for (kind, id_), owner in sorted(owners.items())]
    where = {"kinds": [row["kind"] for row in rows], "ids": [row["id"] for row in rows]}
    yield Write("subject_new", {"subjects": rows})
    known = yield Ask("subject_known", where)
    if len(known) < len(rows):  # one that was deleted came to its end between the two
        yield Write("subject_new", {"subjects": rows})
        known = yield Ask("subject_known", where)
    bound = {one.subject: one.within for one, _, _ in wanted if one.subject is not None and one.within is not None}
    for row in known:
        if bound.get((row["kind"], row["id"]), row["owner"]) != row["owner"]:
            raise NotAllowed(f"{row['kind']} {row['id']!r} belongs to somebody else: choose another id")


def _batch(
    wanted: Wanted, priorities: Sequence[int], numbered: Mapping[int, int], outcomes: Mapping[int, str | None]
) -> JobBatch:
    """What is to be written of those that have a number."""
    batch = JobBatch()
    for place, job_id in numbered.items():
        one, flow_id, graph = wanted[place]
        waiting = [a for a in dict.fromkeys(one.after) if outcomes[a] != "completed"] if one.after else ()
        kind, id_ = one.subject or (None, None)
        plain = kind is None and one.run_at is None and not (waiting or one.dedupe_key)
        # Plain tuples: there may be thousands.
        job = (job_id, one.owner, kind, id_, spec_text(one.spec), one.dedupe_key, one.run_at, len(waiting) or None)
        batch.add(graph, (flow_id, one.skip, bool(waiting), priorities[place], plain), job, waiting)
    return batch


def _checked(one: Submission, graph: Graph) -> int:
    """Refuses what cannot be; the priority as a number."""
    priority = PRIORITIES.get(one.priority) if type(one.priority) is str else None
    if priority is None:
        priority = priority_of(one.priority)
    if one.run_at is not None:
        checked_time(one.run_at)
    for name in one.skip:
        if name not in graph.numbers:
            raise BadSpec(f"flow {graph.flow!r} has no stage {name!r} to skip; it has {', '.join(graph.numbers)}")
    if one.key or one.dedupe_key or one.owner or one.subject:
        _check_names(one)
    return priority


def _check_names(one: Submission) -> None:
    kind, subject_id = _pair(one.subject)
    names = {"key": one.key, "dedupe_key": one.dedupe_key, "owner": one.owner, "subject": f"{kind}{subject_id}"}
    for label, value in names.items():
        if value is not None and not isinstance(value, str):
            raise BadSpec(f"{label} must be a string, not {value!r}")
        if value and len(value) > 255:
            raise BadSpec(f"{label} is longer than 255 characters")
        if value and not is_storable(value):
            raise BadSpec(f"{label} has a character that cannot be stored: NUL, or half of a surrogate pair")


def _pair(subject: object) -> tuple[str, str]:
    if subject is None:
        return "", ""
    match subject:
        case (str(kind), str(subject_id)):
            return kind, subject_id
    raise BadSpec(f"subject must be two strings, its kind and its id, not {subject!r}")


def spec_text(spec: Json) -> str:
    """The spec as it is stored; what would not come back as it was is refused."""
    if spec is None:
        return "{}"
    try:
        text = exact(spec)
    except (TypeError, ValueError, RecursionError) as error:
        raise BadSpec(f"the spec is not JSON: {error}") from None
    if len(text) > MAX_SPEC_CHARS:
        raise BadSpec(f"the spec has {len(text):,} characters; at most {MAX_SPEC_CHARS:,} are taken")
    # The cheapest question first: most specs are flat and plain.
    if text.find("{", 1) > 0 or "[" in text:
        check_json(text, "the spec")
    if "\\" in text and ("\\u0000" in text or "\\ud" in text) and dumps(spec) != text:
        raise BadSpec("the spec has a character that cannot be stored: NUL, or half of a surrogate pair")
    return text


def _find_twins(wanted: Wanted, known: dict[int, int]) -> Steps[None]:
    """An unfinished job with the same dedupe key is the answer; twins within one call share the first."""
    by_owner: dict[str, dict[str, int]] = {}
    for one, _, _ in wanted:
        if one.dedupe_key:
            by_owner.setdefault(one.owner, {})[one.dedupe_key] = 0
    for owner, keys in by_owner.items():
        for row in (yield Ask("dedupe_find", {"owner": owner, "keys": list(keys)})):
            keys[row["dedupe_key"]] = row["id"]
    seen: set[tuple[str, str]] = set()
    for place, (one, _, _) in enumerate(wanted):
        if one.dedupe_key and by_owner[one.owner][one.dedupe_key]:
            known[place] = by_owner[one.owner][one.dedupe_key]
        elif one.dedupe_key and (one.owner, one.dedupe_key) in seen:
            raise BadSpec(f"dedupe_key {one.dedupe_key!r} occurs twice in one call")
        elif one.dedupe_key:
            seen.add((one.owner, one.dedupe_key))


def _known(wanted: Wanted) -> Steps[dict[int, str | None]]:
    """How the jobs that others come after have ended. One of somebody else is as absent as none."""
    awaited = {a for one, _, _ in wanted for a in one.after}
    if not awaited:
        return {}
    rows = yield Ask("after_known", {"ids": sorted(awaited)})
    owners = {row["id"]: row["owner"] for row in rows}
    for one, _, _ in wanted:
        for id_ in one.after:
            if id_ not in owners or one.within not in (None, owners[id_]):
                raise NotFound(f"cannot wait for job {id_}: there is no such job")
    return {row["id"]: row["outcome"] for row in rows}


def _take_keys(wanted: Wanted, numbered: Mapping[int, int], known: dict[int, int]) -> Steps[None]:
    """Whoever inserts the idempotency key creates the job; all others get that job. A twin is an answer too, and
    the key remembers it."""
    for place, (one, _, _) in enumerate(wanted):
        if one.key is None:
            continue
        job_id = known[place] if place in known else numbered[place]
        digest = digest_of(one)
        who = {"owner": one.owner, "key": one.key}
        if (yield Ask("key_put", {**who, "digest": digest, "job_id": job_id})):
            continue
        [row] = yield Ask("key_get", who)
        if row["digest"] != digest:
            raise KeyReused(
                f"idempotency key {one.key!r} was used for job {row['job_id']} with another body; use a new key"
            )
        known[place] = row["job_id"]


def digest_of(one: Submission) -> str:
    body = [
        one.flow,
        one.spec,
        one.subject,
        priority_of(one.priority),
        one.run_at,
        one.after,
        one.skip,
        one.dedupe_key,
        *([one.batch] if one.batch else ()),
        *([one.told] if one.told else ()),
    ]
    return hashlib.sha256(json.dumps(json.loads(dumps(body)), sort_keys=True).encode()).hexdigest()
