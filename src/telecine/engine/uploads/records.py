"""Uploads: how much of each has come, what became of it. The bytes are elsewhere; a row never says more than they do.

    open ── the last byte ──▶ checking ──▶ done        it is a subject and has a job, by one transaction
      └───── refused ◀────────────┘                    with the reason

`received` is what was flushed to disk, so whoever comes back after a crash goes on from there. Open uploads have their
space promised: all that is still to come fits on the disk.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from telecine.engine.maintenance.artifact_gc import put_freed
from telecine.errors import BadSpec, Conflict, NoSpace, NotFound, QuotaExceeded
from telecine.facts import DAY, Instant, Json, Millis
from telecine.json_text import dumps, is_storable
from telecine.store import Ask, Row, Steps, Store

MAX_OPEN = 1_000  # of one owner
FOREVER = 2**62
OPEN, CHECKING, DONE, REFUSED = "open", "checking", "done", "refused"
How = Literal["submitted", "continued", "made before"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Upload:
    """One file on its way in, as it stands."""

    id: str
    owner: str
    name: str
    length: int
    received: int
    state: str
    sha256: str | None
    metadata: dict[str, Json] = field(default_factory=dict)
    spec: dict[str, Json] = field(default_factory=dict)
    job_id: int | None
    subject_id: str | None
    # Whether that subject was new: only then are the bytes kept.
    how: str | None
    error: str | None
    created_at: Instant
    updated_at: Instant
    expires_at: Instant
    now: Instant

    @property
    def is_whole(self) -> bool:
        return self.received == self.length

    @property
    def has_expired(self) -> bool:
        return self.state == OPEN and self.expires_at <= self.now


@dataclass(frozen=True, slots=True, kw_only=True)
class NewUpload:
    """What somebody announces."""

    id: str
    owner: str
    name: str
    length: int
    metadata: dict[str, Any]
    spec: dict[str, Any]


def key_of(upload_id: str) -> str:
    """Where the bytes of an upload lie among the artifacts, once it is done."""
    return f"uploads/{upload_id}/source"


class Uploads:
    """What the server asks about uploads; `life` is how long one waits for its next byte, `quota` how many bytes an
    owner may have here, unfinished uploads and kept sources together; 0: as many as there is room for."""

    def __init__(self, store: Store, life: Millis = DAY, quota: int = 0) -> None:
        self._store = store
        self._life = life
        self._quota = quota

    async def add(self, new: NewUpload, room: int) -> Upload:
        """Begin one, if it fits into the room beside what the others still expect; `NoSpace` if not. `QuotaExceeded` if
        its owner would have more than is his."""
        if not is_storable(new.name):
            raise BadSpec("the name has a character that cannot be stored: NUL, or half of a surrogate pair")
        return await self._store.run(lambda: _add(new, room, self._life, self._quota))

    async def find(self, upload_id: str) -> Upload:
        """`NotFound` if there is none, or not any more."""
        rows = await self._store.read(lambda: _asked("upload_find", {"id": upload_id}))
        if not rows:
            raise none_such(upload_id)
        return _upload(rows[0])

    async def list(self, owner: str | None, *, cursor: str | None = None, limit: int = 100) -> Listed:
        """The newest first; `owner` None: everybody's."""
        before, below = _place(cursor)
        params = {"before": before, "below": below, "wanted": limit + 1}
        rows = await self._store.read(lambda: _listed(owner, params))
        found = tuple(_upload(row) for row in rows[:limit])
        return Listed(found, f"{found[-1].created_at}-{found[-1].id}" if len(rows) > limit else None)

    async def grow(self, upload: Upload, received: int) -> Upload:
        """So many bytes are on the disk now. The last one ends the intake: from then on it is `checking`."""
        params = {"id": upload.id, "before": upload.received, "received": received, "life": self._life}
        rows = await self._store.run(lambda: _asked("upload_grow", params))
        if not rows:
            raise Conflict(f"upload {upload.id} has moved on meanwhile: ask for its offset")
        return _upload(rows[0])

    async def refuse(self, upload_id: str, error: str) -> Upload:
        """It is not taken, and here is why; the row goes after a while."""
        rows = await self._store.run(lambda: _refuse(upload_id, error, self._life))
        return _upload(rows[0]) if rows else await self.find(upload_id)

    async def drop(self, upload_id: str, *, expired: bool = False) -> bool:
        """Forget one that is open or refused; with `expired`, only if it still is that."""
        params = {"id": upload_id, "expired": expired}
        return bool(await self._store.run(lambda: _asked("upload_drop", params)))

    async def checking(self, wanted: int = 100) -> tuple[Upload, ...]:
        """What came whole and has not become anything yet."""
        rows = await self._store.read(lambda: _asked("upload_checking", {"wanted": wanted}))
        return tuple(_upload(row) for row in rows)

    async def expired(self, wanted: int = 100) -> tuple[str, ...]:
        """Whatever nobody finished, and what was refused a while ago."""
        rows = await self._store.read(lambda: _asked("upload_expired", {"wanted": wanted}))
        return tuple(row["id"] for row in rows)

    async def states(self, ids: Sequence[str]) -> dict[str, str]:
        """Of these, those that exist."""
        rows = await self._store.read(lambda: _asked("upload_known", {"ids": list(ids)}))
        return {row["id"]: row["state"] for row in rows}


@dataclass(frozen=True, slots=True)
class Listed:
    items: tuple[Upload, ...]
    next: str | None


def held(upload_id: str) -> Steps[Upload | None]:
    """The upload, which nobody else changes in this transaction; None if it is not `checking`."""
    rows = yield Ask("upload_hold", {"id": upload_id})
    return _upload(rows[0]) if rows and rows[0]["state"] == CHECKING else None


def done(upload_id: str, sha256: str, made: tuple[int, str], how: How) -> Steps[Upload]:
    """It has become a subject; in the transaction that makes that subject. `made` is its job and its id."""
    what = {"id": upload_id, "hash": sha256, "job_id": made[0], "subject_id": made[1], "how": how}
    [row] = yield Ask("upload_done", what)
    return _upload(row)


def free_with(subject_id: str) -> Steps[int]:
    """A subject goes, and with it the uploads that it was made of; in the transaction that deletes it."""
    rows = yield Ask("upload_forget", {"subject_id": subject_id})
    yield from put_freed(f"uploads/{row['id']}/" for row in rows)
    return len(rows)


def none_such(upload_id: str) -> NotFound:
    return NotFound(f"there is no upload {upload_id}")


def _add(new: NewUpload, room: int, life: Millis, quota: int) -> Steps[Upload]:
    yield Ask("upload_turn", {})
    if quota and new.owner:  # what belongs to no owner is the operator's own
        [has] = yield Ask("upload_held", {"owner": new.owner})
        if has["bytes"] + new.length > quota:
            raise QuotaExceeded(
                f"{new.length:,} bytes are too many: you have {has['bytes']:,} of {quota:,} here; "
                "delete something or an unfinished upload"
            )
    [awaited] = yield Ask("upload_awaited", {"owner": new.owner})
    if awaited["theirs"] >= MAX_OPEN:
        raise Conflict(f"{MAX_OPEN} uploads of yours are unfinished: finish or delete some")
    if new.length > room - awaited["bytes"]:
        raise NoSpace(
            f"there is no room for {new.length:,} bytes: {max(0, room - awaited['bytes']):,} are left beside "
            f"{awaited['uploads']} unfinished uploads; delete something, or try again later"
        )
    params = {
        "id": new.id,
        "owner": new.owner,
        "name": new.name,
        "length": new.length,
        "metadata": dumps(new.metadata),
        "spec": dumps(new.spec),
        "life": life,
    }
    [row] = yield Ask("upload_add", params)
    return _upload(row)


def _refuse(upload_id: str, error: str, life: Millis) -> Steps[list[Row]]:
    rows = yield Ask("upload_refuse", {"id": upload_id, "error": error, "life": life})
    if rows:  # whoever died on the way may have stored it already
        yield from put_freed([f"uploads/{upload_id}/"])
    return list(rows)


def _listed(owner: str | None, params: dict[str, Any]) -> Steps[list[Row]]:
    if owner is None:
        return list((yield Ask("uploads_all", params)))
    return list((yield Ask("uploads_of_owner", {**params, "owner": owner})))


def _asked(name: str, params: dict[str, Any]) -> Steps[list[Row]]:
    return list((yield Ask(name, params)))


def _upload(row: Row) -> Upload:
    same = (
        "id", "owner", "name", "length", "received", "state", "sha256", "job_id", "subject_id", "how", "error",
        "created_at", "updated_at", "expires_at", "now",
    )  # fmt: skip
    texts = {name: json.loads(row[name]) for name in ("metadata", "spec")}
    return Upload(**{name: row[name] for name in same}, **texts)


def _place(cursor: str | None) -> tuple[int, str]:
    if cursor is None:
        return FOREVER, ""
    at, _, below = cursor.partition("-")
    if not at.isascii() or not at.isdigit() or len(at) > 18 or not is_storable(below):
        raise BadSpec(f"cursor {cursor!r} is not one that this list gave")
    return int(at), below
