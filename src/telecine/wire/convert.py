"""Values of ours as messages, there and back."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from typing import Any

from telecine.errors import Refused
from telecine.facts import (
    ERROR_CHARS,
    Answer,
    Brief,
    Done,
    Fact,
    Failed,
    Holding,
    JobId,
    Json,
    Kept,
    Lease,
    Line,
    Orders,
    Piece,
    Released,
    Shelved,
    TaskId,
    Word,
    WorkerId,
)
from telecine.wire.messages import (
    FACTS_BYTES,
    AnswerSaid,
    DoneSaid,
    FailedSaid,
    Held,
    KeptSaid,
    OrdersSaid,
    Pair,
    PieceSaid,
    Progress,
    ReleasedSaid,
    Told,
    WordSaid,
)


def lease_to(lease: Lease) -> dict[str, Any]:
    return lease._asdict()


def lease_from(data: dict[str, Any]) -> Lease:
    subject = None if data["subject"] is None else (data["subject"][0], data["subject"][1])
    ids: dict[str, Any] = {
        "task_id": TaskId(data["task_id"]),
        "job_id": JobId(data["job_id"]),
        "worker": WorkerId(data["worker"]),
    }
    return Lease(**{**{name: data[name] for name in Lease._fields}, **ids, "subject": subject})


def brief_to(brief: Brief) -> dict[str, Any]:
    return {**asdict(brief), "kept": [asdict(kept) for kept in brief.kept.values()]}


def brief_from(data: dict[str, Any]) -> Brief:
    kept = {item["name"]: Kept(**item) for item in data["kept"]}
    same = {name: data[name] for name in ("results", "facts", "slots", "retried")}
    return Brief(**same, kept=kept, labels=tuple(data["labels"]))


def shelved_to(shelved: Shelved) -> dict[str, Any]:
    return asdict(shelved)


def shelved_from(data: dict[str, Any]) -> Shelved:
    return Shelved(**{**data, "kept": Kept(**data["kept"])})


def kept_to(kept: Kept) -> dict[str, Any]:
    return {name: getattr(kept, name) for name in KeptSaid.model_fields}


def kept_from(said: KeptSaid, token: int) -> Kept:
    return Kept(token=token, **{name: getattr(said, name) for name in KeptSaid.model_fields})


def holding_to(holding: Holding) -> dict[str, Any]:
    """With as much of the note as is stored: one that is too long would fail the heartbeat of all other leases."""
    note = holding.note
    return {**asdict(holding), "note": None if note is None else note[:ERROR_CHARS]}


def holding_from(said: Held | Progress) -> Holding:
    return Holding(task_id=TaskId(said.task_id), token=said.token, progress=said.progress, note=said.note)


def line_to(line: Line) -> dict[str, Any]:
    """Cut to what is stored of it; data that are too large are left out, and it says so."""
    data = line.data
    if data is not None and len(json.dumps(data, default=str)) > FACTS_BYTES:
        data = {"left_out": f"data of over {FACTS_BYTES} bytes"}
    return asdict(replace(line, message=line.message[:ERROR_CHARS], data=data))


def line_from(said: Told) -> Line:
    return Line(**{**said.model_dump(), "task_id": TaskId(said.task_id)})


def orders_to(orders: Orders, why: str | None = None) -> OrdersSaid:
    return OrdersSaid(**{name: getattr(orders, name) for name in Orders.__slots__}, why=why)


def orders_from(said: OrdersSaid) -> Orders:
    pairs = {name: _pairs(getattr(said, name)) for name in ("renewed", "lost", "stop")}
    return Orders(now=said.now, mode=said.mode, **pairs)


def _pairs(said: list[Pair]) -> tuple[tuple[TaskId, int], ...]:
    return tuple((TaskId(task), token) for task, token in said)


def answer_to(answer: Answer) -> AnswerSaid:
    return AnswerSaid(**answer._asdict())


def answer_from(said: AnswerSaid) -> Answer:
    return Answer(**{**said.model_dump(), "task_id": TaskId(said.task_id)})


def word_to(word: Word) -> dict[str, Any]:
    return {"task_id": word.task_id, "token": word.token, **_fact_to(word.fact)}


def _fact_to(fact: Fact) -> dict[str, Json]:
    match fact:
        case Done():
            plan = None
            if fact.plan is not None:
                plan = {name: [_piece_to(piece) for piece in pieces] for name, pieces in fact.plan.items()}
            flags = {"publish": bool(fact.publish), "stop": bool(fact.stop)}  # handlers may give anything that is true
            return {"done": {name: getattr(fact, name) for name in DoneSaid.model_fields} | flags | {"plan": plan}}
        case Failed():
            return {
                "failed": {**asdict(fact), "message": fact.message[:ERROR_CHARS], "permanent": bool(fact.permanent)}
            }
        case Released():
            return {"released": {"reason": fact.reason[:200]}}
        case _:
            raise TypeError(f"{type(fact).__name__} is not for workers to say")


def _piece_to(piece: object) -> dict[str, Any]:
    return {**asdict(piece), "optional": bool(piece.optional)} if isinstance(piece, Piece) else {"input": piece}


def word_from(said: WordSaid) -> Word:
    facts = [fact for fact in (said.done, said.failed, said.released) if fact is not None]
    if len(facts) != 1:
        raise Refused(f"task {said.task_id}: a word says exactly one of done, failed and released")
    return Word(TaskId(said.task_id), said.token, fact_from(facts[0]))


def fact_from(said: DoneSaid | FailedSaid | ReleasedSaid) -> Done | Failed | Released:
    match said:
        case DoneSaid():
            plan = None if said.plan is None else {n: [_piece_from(p) for p in some] for n, some in said.plan.items()}
            lists: dict[str, Any] = {name: tuple(getattr(said, name)) for name in ("skip", "carry", "leave")}
            same = {name: getattr(said, name) for name in ("result", "facts", "publish", "stop")}
            return Done(plan=plan, **lists, **same)
        case FailedSaid():
            return Failed(said.message, said.code, said.permanent)
        case _:
            return Released(said.reason)


def _piece_from(said: PieceSaid) -> Json:
    """A bare input stays one: the word's digest must be that of the first time it was said."""
    if said.model_fields_set <= {"input"}:
        return said.input
    return Piece(input=said.input, optional=said.optional, labels=tuple(said.labels), patience=said.patience)
