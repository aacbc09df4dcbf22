"""Messages as facts and back. A worker cuts what it sends to what is stored, so that the server does not refuse it."""

from __future__ import annotations

import json
from dataclasses import replace

from telecine.errors import Refused
from telecine.facts import (
    ERROR_CHARS,
    Brief,
    Done,
    Failed,
    HeldLease,
    Json,
    KeptArtifact,
    Lease,
    LeaseOutcome,
    LogEntry,
    Orders,
    Released,
    SettleReply,
    TaskId,
)
from telecine.wire.codec import from_json, to_json
from telecine.wire.fields import MAX_FACTS_BYTES
from telecine.wire.requests import (
    DoneMessage,
    FailedMessage,
    HoldingMessage,
    KeptMessage,
    LogLineMessage,
    OutcomeMessage,
    ProgressRequest,
    ReleasedMessage,
)
from telecine.wire.responses import AnswerMessage, BriefResponse, LeaseMessage, OrdersResponse

MAX_REASON_CHARS = 200


# -- what a worker sends -------------------------------------------------------------------------------


def holding_to(holding: HeldLease) -> dict[str, Json]:
    """With as much of the note as is stored: one that is too long would fail the heartbeat of all other leases."""
    note = holding.note
    return {**to_json(holding), "note": None if note is None else note[:ERROR_CHARS]}


def line_to(line: LogEntry) -> dict[str, Json]:
    """Cut to what is stored of it; data that are too large are left out, and it says so."""
    data = line.data
    if data is not None and len(json.dumps(data, default=str)) > MAX_FACTS_BYTES:
        data = {"left_out": f"data of over {MAX_FACTS_BYTES} bytes"}
    return to_json(replace(line, message=line.message[:ERROR_CHARS], data=data))


def kept_to(kept: KeptArtifact) -> dict[str, Json]:
    """Without its token: the request names it once for all items."""
    return {name: value for name, value in to_json(kept).items() if name != "token"}


def word_to(word: LeaseOutcome) -> dict[str, Json]:
    fact = word.fact
    if isinstance(fact, Failed):
        fact = replace(fact, message=fact.message[:ERROR_CHARS])
    elif isinstance(fact, Released):
        fact = Released(fact.reason[:MAX_REASON_CHARS])
    return to_json(word._replace(fact=fact))


# -- what the server makes of it -----------------------------------------------------------------------


def holding_from(message: HoldingMessage | ProgressRequest) -> HeldLease:
    return HeldLease(task_id=TaskId(message.task_id), token=message.token, progress=message.progress, note=message.note)


def line_from(message: LogLineMessage) -> LogEntry:
    return from_json(LogEntry, dict(message))


def kept_from(message: KeptMessage, token: int) -> KeptArtifact:
    return from_json(KeptArtifact, {**dict(message), "token": token})


def word_from(message: OutcomeMessage) -> LeaseOutcome:
    facts = [fact for fact in (message.done, message.failed, message.released) if fact is not None]
    if len(facts) != 1:
        raise Refused(f"task {message.task_id}: an outcome is exactly one of done, failed and released")
    return LeaseOutcome(TaskId(message.task_id), message.token, fact_from(facts[0]))


def fact_from(message: DoneMessage | FailedMessage | ReleasedMessage) -> Done | Failed | Released:
    """Only what was sent: a planned piece that is nothing but an input must stay a bare input."""
    data = message.model_dump(exclude_unset=True)
    match message:
        case DoneMessage():
            return from_json(Done, data)
        case FailedMessage():
            return from_json(Failed, data)
        case _:
            return from_json(Released, data)


# -- what the server answers ---------------------------------------------------------------------------


def lease_to(lease: Lease) -> LeaseMessage:
    return LeaseMessage.model_construct(**lease._asdict())


def brief_to(brief: Brief) -> BriefResponse:
    same = {name: getattr(brief, name) for name in ("results", "facts", "slots", "retried")}
    return BriefResponse.model_construct(**same, kept=list(brief.kept.values()), labels=list(brief.labels))


def orders_to(orders: Orders, why: str | None = None) -> OrdersResponse:
    return OrdersResponse(**to_json(orders), why=why)


def answer_to(answer: SettleReply) -> AnswerMessage:
    return AnswerMessage.model_construct(**answer._asdict())


# -- what a worker makes of it -------------------------------------------------------------------------


def lease_from(message: LeaseMessage) -> Lease:
    return from_json(Lease, dict(message))


def brief_from(message: BriefResponse) -> Brief:
    return Brief(**{**dict(message), "kept": {one.name: one for one in message.kept}, "labels": tuple(message.labels)})


def orders_from(message: OrdersResponse) -> Orders:
    return from_json(Orders, dict(message))


def answer_from(message: AnswerMessage) -> SettleReply:
    return from_json(SettleReply, dict(message))
