"""The line between a worker and its child process: one JSON object per line. Imports little, for the child's sake.

worker ──▶ child    the order (lease, brief, where the flow is), replies to requests, "stop"
child ──▶ worker    progress, log lines, requests (checkpoint, keep, artifacts, bytes), and at last the outcome
"""

from __future__ import annotations

import json

from telecine.facts import Brief, Json, Lease
from telecine.wire.codec import to_json
from telecine.worker.flow_source import FlowSource

MAX_BYTES = 64 << 20  # of one line; a plan may have thousands of pieces


def to_line(message: dict[str, Json]) -> bytes:
    return json.dumps(message, separators=(",", ":")).encode() + b"\n"


def order_to(lease: Lease, brief: Brief, source: FlowSource, scratch: str, path: list[str]) -> dict[str, Json]:
    """What the handler's process is to do; the sender adds the folder of artifacts, if there is one."""
    return {
        "lease": to_json(lease),
        "brief": to_json(brief),
        "source": to_json(source),
        "scratch": scratch,
        "path": path,
    }
