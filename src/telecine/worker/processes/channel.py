"""What a worker and its child say to each other: one JSON object per line. Imports little, for the child's sake.

worker ──▶ child    the order (lease, brief, where the flow is), answers to asks, "stop"
child ──▶ worker    progress, lines, asks (checkpoint, keep, artifacts, bytes), and at last the end
"""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

from telecine.facts import (
    Brief,
    Done,
    Fact,
    Failed,
    JobId,
    Json,
    Kept,
    Lease,
    Piece,
    Released,
    Shelved,
    TaskId,
    WorkerId,
)
from telecine.worker.flow_source import FlowSource

MOST_BYTES = 64 << 20  # of one line; a plan may have thousands of pieces


def to_line(message: dict[str, Json]) -> bytes:
    return json.dumps(message, separators=(",", ":")).encode() + b"\n"


def order_to(lease: Lease, brief: Brief, source: FlowSource, scratch: str, path: list[str]) -> dict[str, Json]:
    """What the handler's process is to do; whoever sends it adds where artifacts are, if that is a folder."""
    return {
        "lease": lease._asdict(),
        "brief": {
            "results": brief.results,
            "facts": brief.facts,
            "kept": [asdict(k) for k in brief.kept.values()],
            "slots": brief.slots,
            "labels": brief.labels,
            "retried": brief.retried,
        },
        "source": asdict(source),
        "scratch": scratch,
        "path": path,
    }


def lease_from(data: dict[str, Json]) -> Lease:
    subject = None if data["subject"] is None else (data["subject"][0], data["subject"][1])
    ids: dict[str, Any] = {
        "task_id": TaskId(data["task_id"]),
        "job_id": JobId(data["job_id"]),
        "worker": WorkerId(data["worker"]),
    }
    return Lease(**{**data, **ids, "subject": subject})


def brief_from(data: dict[str, Json]) -> Brief:
    kept = {item["name"]: Kept(**item) for item in data["kept"]}
    same = {name: data[name] for name in ("results", "facts", "slots", "retried")}
    return Brief(**same, kept=kept, labels=tuple(data["labels"]))


def shelved_from(data: dict[str, Json]) -> Shelved:
    return Shelved(**{**data, "kept": Kept(**data["kept"])})


def fact_to(fact: Fact) -> dict[str, Json]:
    match fact:
        case Done():
            plan = None
            if fact.plan is not None:
                plan = {name: [_piece_to(piece) for piece in pieces] for name, pieces in fact.plan.items()}
            return {"is": "done", **_shallow(fact), "plan": plan}
        case Failed():
            return {"is": "failed", **_shallow(fact)}
        case Released():
            return {"is": "released", "reason": fact.reason}
        case _:
            raise TypeError(f"{type(fact).__name__} is not for workers to say")


def fact_from(data: dict[str, Json]) -> Done | Failed | Released:
    fields = {key: value for key, value in data.items() if key != "is"}
    match data["is"]:
        case "done":
            plan = fields["plan"]
            if plan is not None:
                plan = {name: [_piece_from(piece) for piece in pieces] for name, pieces in plan.items()}
            lists = {"skip": tuple(fields["skip"]), "carry": tuple(fields["carry"]), "leave": tuple(fields["leave"])}
            return Done(**{**fields, "plan": plan, **lists})
        case "failed":
            return Failed(**fields)
        case _:
            return Released(**fields)


def _shallow(value: Any) -> dict[str, Json]:
    names: tuple[str, ...] = getattr(value, "_fields", ()) or value.__slots__  # a named tuple, or a dataclass
    return {name: getattr(value, name) for name in names}


def _piece_to(piece: object) -> Json:
    return {"piece": asdict(piece)} if isinstance(piece, Piece) else {"input": piece}


def _piece_from(data: dict[str, Json]) -> object:
    if "piece" not in data:
        return data["input"]
    return Piece(**{**data["piece"], "labels": tuple(data["piece"]["labels"])})
