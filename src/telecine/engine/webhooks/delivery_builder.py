"""Events into letters: in one transaction each reader of an event gets a delivery, and the postman's place moves on.

    hold the postman's row ─▶ read events after its place ─▶ who reads them? ─▶ deliveries, cooldowns ─▶ move, commit

Whoever dies in between has done nothing; who comes second finds the row held. So an event is written down once for
each reader, whatever happens and however many servers look. To send it is another matter (`deliveries.py`).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from telecine.engine.queries.job_view import loads, subject_of
from telecine.engine.queries.view_models import Subject
from telecine.engine.webhooks.subscriptions import KINDS, host_of
from telecine.facts import Instant, Json, Millis
from telecine.json_text import dumps
from telecine.store import Ask, Row, Rows, Steps, Write

AT_ONCE = 500
# Numbers that are passed in one look, most of them of events that nobody is told.
SPAN = 20_000
MAX_CHARS = 2_000


@dataclass(frozen=True, slots=True, kw_only=True)
class News:
    """An event with what is known about its job. The last two are counted where alerts are wanted."""

    seq: int
    at: Instant
    kind: str
    job_id: int | None
    stage: str | None
    worker: int | None
    worker_name: str | None
    data: dict[str, Json]
    owner: str | None
    flow: str | None
    subject: Subject | None
    status: str | None
    created_at: Instant | None
    ended_at: Instant | None
    # Failed attempts of the subject (without one: of the job) since it last completed a job.
    failures: int = 0
    # A task of it ended in error because no attempt was left.
    exhausted: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class AlertRules:
    """Where alerts go, which there are, and how often. `judge` says which alerts an event gives rise to."""

    host: str
    kinds: tuple[str, ...]
    events: tuple[str, ...]
    judge: Callable[[News], Sequence[str]]
    cooldown: Millis
    pattern: int


@dataclass(frozen=True, slots=True)
class Posted:
    """What one look did. `more`: there is no need to wait before the next. `missed`: events that were pruned unread."""

    letters: int = 0
    held: int = 0
    more: bool = False
    missed: int = 0


@dataclass(slots=True)
class _Bag:
    """Letters and cooldowns as this transaction will leave them."""

    letters: list[dict[str, Any]] = field(default_factory=list)
    cooldowns: dict[str, tuple[Instant, int]] = field(default_factory=dict)
    held: int = 0


def post(rules: AlertRules | None) -> Steps[Posted]:
    """One look: the next events, told to whoever wants to know."""
    rows = yield Ask("postman_hold", {})
    if not rows:
        return Posted()
    place = rows[0]
    # Numbers beyond the newest: an older database was restored.
    begin = min(max(place["seq"], place["pruned"]), place["newest"])
    until = min(begin + SPAN, place["newest"])
    kinds = sorted({*KINDS, *(rules.events if rules else ())})
    found = yield Ask("news", {"seq": begin, "until": until, "kinds": kinds, "wanted": AT_ONCE})
    news = [_news(row) for row in found]
    bag = _Bag()
    yield from _to_readers(news, bag)
    if rules is not None:
        yield from _to_operator(news, rules, place["now"], bag)
    if bag.letters:
        yield Write("delivery_put", {"letters": bag.letters})
    reached = news[-1].seq if len(news) == AT_ONCE else until
    if reached != place["seq"]:
        yield Ask("postman_move", {"seq": reached})
    return Posted(len(bag.letters), bag.held, reached < place["newest"], max(0, place["pruned"] - place["seq"]))


def _to_readers(news: Sequence[News], bag: _Bag) -> Steps[None]:
    told = [one for one in news if one.kind in KINDS]
    if not told:
        return
    owners = sorted({one.owner for one in told if one.owner is not None})
    jobs = sorted({one.job_id for one in told if one.job_id is not None})
    readers: Rows = yield Ask("news_readers", {"owners": owners, "jobs": jobs})
    for one in told:
        for reader in _readers_of(one, readers):
            who = {"webhook_id": reader["id"], "owner": reader["owner"], "host": host_of(reader["url"])}
            bag.letters.append({**who, "kind": one.kind, "event_seq": one.seq, "body": dumps(facts_of(one))})


def _readers_of(one: News, readers: Rows) -> Iterator[Row]:
    for reader in readers:
        # What was before a webhook is not its business; that of a single job came with the job.
        own = reader["job_id"] is None and reader["owner"] == one.owner and reader["created_at"] <= one.at
        if (own or reader["job_id"] == one.job_id) and one.kind in json.loads(reader["kinds"]):
            yield reader


def _to_operator(news: Sequence[News], rules: AlertRules, now: Instant, bag: _Bag) -> Steps[None]:
    judged = [one for one in news if one.kind in rules.events]
    if not judged:
        return
    jobs = sorted({one.job_id for one in judged if one.job_id is not None})
    counted = {}
    if jobs:
        rows = yield Ask("news_failures", {"ids": jobs, "most": rules.pattern})
        counted = {row["job_id"]: (row["failures"], bool(row["exhausted"])) for row in rows}
    cooldowns = yield Ask("alert_list", {})
    bag.cooldowns = {row["kind"]: (row["sent_at"], row["held"]) for row in cooldowns}
    before = dict(bag.cooldowns)
    for one in judged:
        failures, exhausted = counted.get(one.job_id, (0, False))
        for kind in rules.judge(replace(one, failures=failures, exhausted=exhausted)):
            if kind in rules.kinds:
                _alert(kind, replace(one, failures=failures), rules, now, bag)
    changed = [
        {"kind": kind, "sent_at": at, "held": held}
        for kind, (at, held) in bag.cooldowns.items()
        if before.get(kind) != (at, held)
    ]
    if changed:
        yield Write("alert_put", {"alerts": changed})


def _alert(kind: str, one: News, rules: AlertRules, now: Instant, bag: _Bag) -> None:
    """Told, unless one of the same kind was told not long ago: then counted, and told with the next."""
    sent_at, held = bag.cooldowns.get(kind, (None, 0))
    if sent_at is not None and sent_at <= now < sent_at + rules.cooldown:
        bag.cooldowns[kind] = (sent_at, held + 1)
        bag.held += 1
        return
    bag.cooldowns[kind] = (now, 0)
    body = dumps({**facts_of(one), "held_back": held})
    who = {"webhook_id": None, "owner": None, "host": rules.host}
    bag.letters.append({**who, "kind": kind, "event_seq": one.seq, "body": body})


def facts_of(one: News) -> dict[str, Json]:
    """What a letter says, before it gets its shape."""
    facts: dict[str, Json] = {"seq": one.seq, "at": one.at, "stage": one.stage, "data": _short(one.data)}
    if one.job_id is not None:
        subject = None if one.subject is None else {"kind": one.subject[0], "id": one.subject[1]}
        times = {"created_at": one.created_at, "ended_at": one.ended_at}
        who = {"id": one.job_id, "flow": one.flow, "owner": one.owner, "status": one.status}
        facts["job"] = {**who, "subject": subject, **times}
    if one.worker is not None:
        facts["worker"] = {"id": one.worker, "name": one.worker_name or one.data.get("name")}
    if one.failures:
        facts["failures"] = one.failures
    return facts


def _short(data: dict[str, Json]) -> dict[str, Json]:
    """Messages of tools can be long; a letter is a notice."""
    return {name: value[:MAX_CHARS] if isinstance(value, str) else value for name, value in data.items()}


def _news(row: Row) -> News:
    same = ("seq", "at", "kind", "job_id", "stage", "worker", "worker_name", "owner", "flow", "status", "created_at")
    data = loads(row["data"], {})
    return News(
        **{name: row[name] for name in (*same, "ended_at")},
        subject=None if row["flow"] is None else subject_of(row),
        data=data if isinstance(data, dict) else {"value": data},
    )
