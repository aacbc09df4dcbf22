"""What a letter says: for programs as JSON, for people as a line in Slack or Discord.

A line tells what happened, to which job, and what to do, with a link to it. Names and messages in it come from
strangers: they can neither disguise a link nor call a whole channel.
"""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime
from typing import Any

from telecine.facts import SECOND, Json
from telecine.observe import alerts

MAX_BYTES = 64 << 10
# Discord refuses more than 2,000.
MAX_CHARS = 1_800
QUOTED_CHARS = 300

Facts = dict[str, Any]

_ADVICE = {
    alerts.STALE: "Nothing is lost; if it happens often, see why workers vanish.",
    alerts.EXHAUSTED: "See its log, mend the cause, then retry it.",
    alerts.PATTERN: "Look at the source itself before anything is retried.",
}
_MARKS = re.compile(r"([\\*_~`|>#\[\]()<@:])")


def body_of(kind: str, facts: Facts, shape: str, public_url: str | None) -> bytes:
    """The bytes of it."""
    link = link_of(facts, public_url)
    if shape == "slack":
        text = _slack(line_of(kind, facts))
        shaped: Json = {"text": f"{text} <{_slack(link)}|Open>" if link else text}
    elif shape == "discord":
        text = _discord(line_of(kind, facts))
        shaped = {"content": f"{text} <{link}>" if link else text, "allowed_mentions": {"parse": []}}
    else:
        shaped = {"type": kind, "timestamp": _written(facts.get("at")), "data": _data(kind, facts, link)}
    body = json.dumps(shaped, ensure_ascii=False, separators=(",", ":")).encode()
    if len(body) > MAX_BYTES:
        raise ValueError(f"a body of {len(body)} bytes is too large to be sent")
    return body


def line_of(kind: str, facts: Facts) -> str:
    """One line for people."""
    said = _said(kind, facts)
    if held := facts.get("held_back"):
        said += f" {held} more of this kind since the last alert were held back."
    if advice := _ADVICE.get(kind):
        said += f" {advice}"
    return said[:MAX_CHARS]


def _said(kind: str, facts: Facts) -> str:
    what, stage = _job(facts), facts.get("stage")
    worker = (facts.get("worker") or {}).get("name") or "a worker"
    match kind:
        case alerts.STALE:
            return f"Stale job recovered: {what} lost its worker ({worker}) in stage {stage}, which is ready again."
        case alerts.EXHAUSTED:
            return f"No attempts left: {what} has failed{_why(facts)}."
        case alerts.PATTERN:
            return f"Failing again and again: {what} has {facts.get('failures')} failed attempts or more{_why(facts)}."
        case alerts.STARTUP:
            return f"Worker up: {worker}."
        case alerts.SHUTDOWN:
            return f"Worker down: {worker}."
        case "job.failed":
            return f"{_large(what)} has failed{_why(facts)}."
        case "webhook.test":
            return "A test: this webhook works."
        case _:
            return f"{_large(what)} was {kind.removeprefix('job.')}."


def _job(facts: Facts) -> str:
    job = facts.get("job")
    if job is None:
        return "something"
    subject = job.get("subject")
    of = f" of {subject['kind']} {_quoted(subject['id'])}" if subject else ""
    return f"{job.get('flow')} job {job['id']}{of}"


def _why(facts: Facts) -> str:
    data = facts.get("data") or {}
    stage = data.get("stage") or facts.get("stage")
    at = f" in stage {stage}" if stage else ""
    return f"{at}: {_quoted(data['message'])}" if data.get("message") else at


def _quoted(text: str) -> str:
    short = " ".join(str(text).split())
    return short if len(short) <= QUOTED_CHARS else f"{short[:QUOTED_CHARS]}…"


def _large(text: str) -> str:
    return text[:1].upper() + text[1:]


def link_of(facts: Facts, public_url: str | None) -> str | None:
    """The job in the API: opens with a key, and in a browser that is logged in."""
    job = facts.get("job")
    return f"{public_url}/api/v1/jobs/{job['id']}" if public_url and job else None


def _data(kind: str, facts: Facts, link: str | None) -> Facts:
    """Everything that is known, and the line for whoever shows it as it is."""
    own = {name: value for name, value in facts.items() if value is not None and name not in ("at", "data")}
    return {**own, "details": facts.get("data") or {}, "text": line_of(kind, facts), "link": link}


def _written(at: int | None) -> str | None:
    if at is None:
        return None
    return datetime.fromtimestamp(at / SECOND, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _slack(text: str | None) -> str:
    return (text or "").replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _discord(text: str) -> str:
    return _MARKS.sub(r"\\\1", text)[:MAX_CHARS].rstrip("\\")
