"""Who may ask: keys of programs, one-time links of people, and the sessions that such links open.

    tcn_owner_1f0c9a3be27d_<64 hex digits>_8d1c03f2
        scope  id           secret           check

Only the hash of the secret is stored. A slip of the pen is found by the check, without a question to the database.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import re
import zlib
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, TypedDict, Unpack

from telecine.engine.queries.timeline import after, limited, page
from telecine.engine.queries.view_models import Page
from telecine.errors import Conflict, KeyInvalid, NotFound
from telecine.facts import DAY, MINUTE, Instant, Json, Millis
from telecine.json_text import dumps
from telecine.store import Ask, Row, Steps, Store
from telecine.world import World

ID_CHARS = 12
LINK_LIFE = 15 * MINUTE
SESSION_LIFE = 30 * DAY
TOUCH_EVERY = MINUTE
MAX_DEAD = 1_000  # of one owner, for whoever looks what became of a key
FOREVER = (2**62, 16**ID_CHARS - 1)
AT_ONCE = 500

KeyRow = Row
RowOf = Callable[[str], Awaitable[KeyRow | None]]

_SHAPE = re.compile(r"tcn_(admin|owner|worker)_([0-9a-f]{12})_([0-9a-f]{64})_([0-9a-f]{8})")
_REGISTER = "`telecine workers register NAME` makes a worker's key"
# Compared with when there is no such key, so that an unknown one takes as long as a wrong one.
_NOBODY = hashlib.sha256(b"nobody").hexdigest()


class Scope(StrEnum):
    """What a key opens: everything, what belongs to an owner, or the work of a worker."""

    ADMIN = "admin"
    OWNER = "owner"
    WORKER = "worker"


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyView:
    """A key as it may be shown."""

    id: str
    kind: str
    scope: str
    owner: str
    name: str
    facts: dict[str, Json] = field(default_factory=dict)
    created_at: Instant
    expires_at: Instant | None
    last_used_at: Instant | None
    revoked_at: Instant | None


@dataclass(frozen=True, slots=True)
class Issued:
    """A new key. `text` is told once, and nowhere kept."""

    id: str
    text: str
    expires_at: Instant | None


@dataclass(frozen=True, slots=True)
class Caller:
    """Whoever asks, by a key that is valid now."""

    key_id: str
    kind: str
    scope: Scope
    owner: str
    name: str

    @property
    def is_admin(self) -> bool:
        return self.scope is Scope.ADMIN

    @property
    def sees(self) -> str | None:
        """The owner whose things are shown to it; None: everybody's."""
        return None if self.is_admin else self.owner

    def may_see(self, owner: str) -> bool:
        return self.is_admin or owner == self.owner


class Manner(TypedDict, total=False):
    """How a key is made; what is left out is empty. No `life`: for ever. `most`: refused if its owner has so many."""

    owner: str
    name: str
    kind: str
    life: Millis | None
    facts: dict[str, Any]
    most: int


class Keys:
    def __init__(self, store: Store, world: World) -> None:
        self._store = store
        self._world = world

    async def issue(self, scope: Scope, **how: Unpack[Manner]) -> Issued:
        return await self._store.run(lambda: self.issuing(scope, **how))

    def issuing(self, scope: Scope, **how: Unpack[Manner]) -> Steps[Issued]:
        """The steps of it, for a transaction that does more."""
        owner = how.get("owner", "")
        if "most" in how:
            yield from _room(owner, how["most"])
        key_id, secret = self._world.new_id()[:ID_CHARS], self._world.secret()
        params = {
            "id": key_id,
            "kind": how.get("kind", "key"),
            "scope": scope.value,
            "owner": owner,
            "name": how.get("name", ""),
            "secret_hash": hash_of(secret),
            "facts": dumps(how.get("facts", {})),
            "life": how.get("life"),
        }
        [row] = yield Ask("key_add", params)
        return Issued(key_id, written(scope, key_id, secret), row["expires_at"])

    async def find(self, text: str, row_of: RowOf | None = None) -> Caller:
        """Whose key this is; `KeyInvalid` unless it is valid now. `row_of` is for whoever reads more than its row."""
        scope, key_id, secret = read(text)
        row = await (row_of or self._row)(key_id)
        known = hmac.compare_digest(hash_of(secret), row["secret_hash"] if row else _NOBODY)
        if row is None or not known or row["scope"] != scope or row["kind"] == "link":
            hint = f"; {_REGISTER}" if _is_workers(text) else ""
            raise KeyInvalid(f"this key is not known here{hint}")
        if row["revoked_at"] is not None:
            raise KeyInvalid("this key was revoked")
        if row["expires_at"] is not None and row["expires_at"] <= row["now"]:
            raise KeyInvalid("this key has expired")
        if row["last_used_at"] is None or row["now"] - row["last_used_at"] > TOUCH_EVERY:
            await self._store.run(lambda: _asked("key_touch", {"id": key_id}))
        return Caller(key_id, row["kind"], Scope(row["scope"]), row["owner"], row["name"])

    async def _row(self, key_id: str) -> Row | None:
        rows = await self._store.read(lambda: _found(key_id))
        return rows[0] if rows else None

    async def link(self) -> str:
        """The secret of a link that logs an administrator in, once."""
        return (await self.issue(Scope.ADMIN, kind="link", name="login link", life=LINK_LIFE)).text

    async def log_in(self, text: str) -> Issued:
        """Spend a link: the session that it opens."""
        _, key_id, secret = read(text)

        def steps() -> Steps[Issued]:
            rows = yield from _found(key_id)
            row = rows[0] if rows and hmac.compare_digest(hash_of(secret), rows[0]["secret_hash"]) else None
            if row is None or not (yield Ask("key_spend", {"id": key_id})):
                raise KeyInvalid("this link was used before or is too old: `telecine login` makes another one")
            scope = Scope(row["scope"])
            return (
                yield from self.issuing(scope, owner=row["owner"], name="session", kind="session", life=SESSION_LIFE)
            )

        return await self._store.run(steps)

    async def page(self, *, owner: str | None = None, cursor: str | None = None, limit: int = 100) -> Page[KeyView]:
        """Keys of programs, the newest first: everybody's, or those that open what belongs to one owner."""
        before, below = after(cursor, FOREVER)
        where = {"before": before, "below": f"{below:0{ID_CHARS}x}", "wanted": limited(limit) + 1}
        name, wanted = ("key_list", where) if owner is None else ("key_list_of", {**where, "owner": owner})
        rows = await self._store.read(lambda: _asked(name, wanted))
        return page([_view(row) for row in rows], limit, lambda key: (key.created_at, int(key.id, 16)))

    async def list(self, *, owner: str | None = None) -> tuple[KeyView, ...]:
        """All of them, page by page."""
        found = await self.page(owner=owner, limit=AT_ONCE)
        items = list(found.items)
        while found.next is not None:
            found = await self.page(owner=owner, cursor=found.next, limit=AT_ONCE)
            items += found.items
        return tuple(items)

    async def revoke(self, key_id: str, *, owner: str | None = None) -> None:
        """At once, and for good; with `owner`, only a key that opens what is his."""

        def steps() -> Steps[None]:
            rows = yield from _found(key_id)
            own = [row for row in rows if owner is None or _opens(row) == ("key", Scope.OWNER, owner)]
            if not own or not (yield Ask("key_revoke", {"id": key_id, "owner": owner})):
                raise NotFound(f"there is no key {key_id}, or it was revoked before")

        await self._store.run(steps)

    async def revoke_if_valid(self, key_id: str) -> None:
        """The same for whoever does not care if somebody else did it before."""
        await self._store.run(lambda: _asked("key_revoke", {"id": key_id, "owner": None}))

    async def spend_ticket(self, text: str) -> Caller:
        """Whose ticket this is; `KeyInvalid` if it was used before, is too old, or its key is no longer valid."""
        from telecine.engine.accounts.tickets import spend  # noqa: PLC0415 - it imports this module

        return await spend(self._store, text)

    async def is_locked_out(self) -> bool:
        """Whether nobody could log in: no administrator has a key or a session."""
        [row] = await self._store.read(lambda: _asked("key_any", {}))
        return not row["found"]


def _room(owner: str, most: int) -> Steps[None]:
    """`Conflict` if this owner has so many valid ones; of worthless ones the oldest go."""
    yield Ask("key_turn", {"owner": owner})
    [row] = yield Ask("key_count", {"owner": owner})
    if row["valid"] >= most:
        raise Conflict(f"{owner or 'this owner'} has {row['valid']} keys, and no owner more than {most}: revoke one")
    yield Ask("key_trim", {"owner": owner, "most": MAX_DEAD})


def _opens(row: Row) -> tuple[str, str, str]:
    return row["kind"], row["scope"], row["owner"]


def written(scope: str, key_id: str, secret: str) -> str:
    body = f"tcn_{scope}_{key_id}_{secret}"
    return f"{body}_{_check(body)}"


def read(text: str) -> tuple[str, str, str]:
    """Scope, id and secret of a key; `KeyInvalid` if it cannot be one."""
    match = _SHAPE.fullmatch(text)
    if match is None or not hmac.compare_digest(_check(text.rpartition("_")[0]), match[4]):
        looks = "tcn_worker_…" if _is_workers(text) else "tcn_owner_…"
        raise KeyInvalid(
            f"this is not a key: one looks like {looks}, and this one is incomplete or has a slip in it"
            + (f"; {_REGISTER}" if _is_workers(text) else "")
        )
    return match[1], match[2], match[3]


def _is_workers(text: str) -> bool:
    return text.startswith("tcn_worker_")


def _check(body: str) -> str:
    return f"{zlib.crc32(body.encode()):08x}"


def hash_of(secret: str) -> str:
    # A slow hash is for passwords: 256 random bits cannot be guessed.
    return hashlib.sha256(secret.encode()).hexdigest()


def _found(key_id: str) -> Steps[list[Row]]:
    return list((yield Ask("key_find", {"id": key_id})))


def _asked(name: str, params: dict[str, Any]) -> Steps[list[Row]]:
    return list((yield Ask(name, params)))


def _view(row: Row) -> KeyView:
    names = ("id", "kind", "scope", "owner", "name", "created_at", "expires_at", "last_used_at", "revoked_at")
    return KeyView(**{name: row[name] for name in names}, facts=json.loads(row["facts"]))
