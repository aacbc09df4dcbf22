"""What players ask for, each by one short read: whose it is, where its bytes lie, and what time it is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from telecine.facts import DAY, Instant
from telecine.store import Ask, Row, Rows, Steps, Store, ask
from telecine.world import World

# So long after another version took its place can those watch on who had begun before.
LINGER = DAY


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedVersion:
    """A version that exists now. `lingers`: it is shown, or was until not long ago."""

    owner: str
    id: int
    number: int
    lingers: bool
    now: Instant


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedFile:
    """A file that somebody may fetch. One that is not published is its owner's."""

    owner: str
    name: str
    key: str
    size: int
    sha256: str
    published: bool
    lingers: bool
    now: Instant


@dataclass(frozen=True, slots=True, kw_only=True)
class GrowingJob:
    """A job that makes something of a subject."""

    owner: str
    status: str
    now: Instant


class PublishedFiles:
    """Reads for one kind of subjects. What was deleted is not there for anybody."""

    def __init__(self, store: Store, kind: str) -> None:
        self._store = store
        self._kind = kind

    async def version(self, subject_id: str, number: int | None) -> PublishedVersion | None:
        """The version with this number; None: the one that is shown."""
        row = await self._first("watch_version", {**self._who(subject_id), "number": number, "linger": LINGER})
        if row is None:
            return None
        return PublishedVersion(**_same(row, "owner", "id", "number", "now"), lingers=bool(row["lingers"]))

    async def file(self, subject_id: str, artifact: int, token: int) -> PublishedFile | None:
        """A file by the id of its artifact, as it was kept with this token."""
        which = {"artifact": artifact, "token": token, "linger": LINGER}
        return _file(await self._first("watch_file", {**self._who(subject_id), **which}))

    async def beside(self, version: PublishedVersion, stages: Sequence[str], name: str) -> PublishedFile | None:
        """A file by its name among those that these stages have made for a version."""
        row = await self._first("watch_beside", {"version": version.id, "stages": list(stages), "name": name})
        if row is None:
            return None
        about = {"owner": version.owner, "lingers": version.lingers, "now": version.now, "published": True}
        return _file({**row, **about})

    async def job(self, subject_id: str, job_id: int, flow: str) -> GrowingJob | None:
        row = await self._first("watch_job", {**self._who(subject_id), "job_id": job_id, "flow": flow})
        return None if row is None else GrowingJob(**_same(row, "owner", "status", "now"))

    def _who(self, subject_id: str) -> dict[str, Any]:
        return {"kind": self._kind, "id": subject_id}

    async def _first(self, name: str, params: dict[str, Any]) -> Row | None:
        def steps() -> Steps[Rows]:
            rows: Rows = yield Ask(name, params)
            return rows

        rows = await self._store.read(steps)
        return rows[0] if rows else None


def _file(row: Row | None) -> PublishedFile | None:
    if row is None:
        return None
    same = _same(row, "owner", "name", "key", "size", "sha256", "now")
    return PublishedFile(**same, published=bool(row["published"]), lingers=bool(row["lingers"]))


def _same(row: Row, *names: str) -> dict[str, Any]:
    return {name: row[name] for name in names}


async def secret_and_time(store: Store, world: World, name: str) -> tuple[str, Instant]:
    """A secret that all servers on this database share, made on first use; and the database's time."""

    def steps() -> Steps[Rows]:
        rows: Rows = yield Ask("secret_get", {"name": name})
        return rows

    rows = await store.read(steps)
    if not rows:
        await ask(store, "secret_put", {"name": name, "value": world.secret()})
        rows = await store.run(steps)
    return rows[0]["value"], rows[0]["now"]
