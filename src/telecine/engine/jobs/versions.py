"""Which of its versions a subject shows, and which ones stay whatever retention thinks: what people decide about it.

Both go by the subject's row, which publishing and retention hold, too: a version that is shown keeps its files, and one
whose files are gone is never shown.
"""

from __future__ import annotations

from collections.abc import Mapping

from telecine.errors import NotFound, WrongState
from telecine.facts import Json
from telecine.json_text import dumps
from telecine.store import Ask, Row, Steps, Write

Who = tuple[str, str]


def show(who: Who, number: int, *, facts: Mapping[str, Json] | None = None, actor: str = "") -> Steps[bool]:
    """Flip the pointer to an older (or again to a newer) version; False if it is the one that is shown already.

    `facts` are those of that version: what the subject says about itself must not be about another one.
    """
    current, version = yield from _hold(who, number)
    if version["id"] == current:
        return False
    if not version["whole"]:
        raise WrongState(f"the files of version {number} of {who[0]} {who[1]!r} were freed: it cannot be shown again")
    yield Ask("version_show", {"kind": who[0], "id": who[1], "version": version["id"]})
    if facts:
        known = {"kind": who[0], "id": who[1], "owner": "", "facts": dumps(dict(facts))}
        yield Write("subject_put", {"subjects": [known]})
    yield _event("subject.version_shown", who, {"number": number, "actor": actor})
    return True


def keep(who: Who, number: int, keep: bool = True, *, actor: str = "") -> Steps[bool]:
    """Protect a version from retention, or let it go; False if nothing changed."""
    _, version = yield from _hold(who, number)
    if bool(version["keep"]) == keep:
        return False
    if keep and not version["whole"]:
        raise WrongState(f"the files of version {number} of {who[0]} {who[1]!r} were freed: there is nothing to keep")
    yield Ask("version_keep", {"version": version["id"], "keep": keep})
    kind = "subject.version_kept" if keep else "subject.version_let_go"
    yield _event(kind, who, {"number": number, "actor": actor})
    return True


def _hold(who: Who, number: int) -> Steps[tuple[int | None, Row]]:
    """The version that is shown and the one that is meant; nobody flips or frees until this transaction has ended."""
    held = yield Ask("subject_hold", {"kind": who[0], "id": who[1]})
    if not held:
        raise NotFound(f"there is no {who[0]} {who[1]!r}")
    found = yield Ask("version_find", {"kind": who[0], "id": who[1], "number": number})
    if not found:
        raise NotFound(f"{who[0]} {who[1]!r} has no version {number}")
    return held[0]["current_version"], found[0]


def _event(kind: str, who: Who, data: dict[str, Json]) -> Ask:
    nobody = {"job_id": None, "task_id": None, "stage": None, "token": None, "worker": None}
    return Ask("event_say", {"kind": kind, **nobody, "data": dumps({"kind": who[0], "id": who[1], **data})})
