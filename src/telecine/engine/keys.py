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
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from telecine.errors import KeyInvalid, NotFound
from telecine.facts import DAY, MINUTE, Instant, Json, Millis
from telecine.store import Ask, Row, Steps, Store
from telecine.store.text import dumps
from telecine.world import World

ID_CHARS = 12
LINK_LIFE = 15 * MINUTE
SESSION_LIFE = 30 * DAY
TOUCH_EVERY = MINUTE
PRUNE_AFTER = 7 * DAY

_SHAPE = re.compile(r"tcn_(admin|owner|worker)_([0-9a-f]{12})_([0-9a-f]{64})_([0-9a-f]{8})")
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


class Keys:
    def __init__(self, store: Store, world: World) -> None:
        self._store = store
        self._world = world

    async def issue(
        self,
        scope: Scope,
        *,
        owner: str = "",
        name: str = "",
        kind: str = "key",
        life: Millis | None = None,
        facts: dict[str, Any] | None = None,
    ) -> Issued:
        return await self._store.run(
            lambda: self.issuing(scope, owner=owner, name=name, kind=kind, life=life, facts=facts)
        )

    def issuing(
        self,
        scope: Scope,
        *,
        owner: str = "",
        name: str = "",
        kind: str = "key",
        life: Millis | None = None,
        facts: dict[str, Any] | None = None,
    ) -> Steps[Issued]:
        """The steps of it, for a transaction that does more."""
        key_id, secret = self._world.new_id()[:ID_CHARS], self._world.secret()
        params = {
            "id": key_id,
            "kind": kind,
            "scope": scope.value,
            "owner": owner,
            "name": name,
            "secret_hash": hash_of(secret),
            "facts": dumps(facts or {}),
            "life": life,
        }
        [row] = yield Ask("key_add", params)
        return Issued(key_id, written(scope, key_id, secret), row["expires_at"])

    async def find(self, text: str) -> Caller:
        """Whose key this is; `KeyInvalid` unless it is valid now."""
        scope, key_id, secret = read(text)
        rows = await self._store.read(lambda: _found(key_id))
        row = rows[0] if rows else None
        known = hmac.compare_digest(hash_of(secret), row["secret_hash"] if row else _NOBODY)
        if row is None or not known or row["scope"] != scope or row["kind"] == "link":
            raise KeyInvalid("this key is not known here")
        if row["revoked_at"] is not None:
            raise KeyInvalid("this key was revoked")
        if row["expires_at"] is not None and row["expires_at"] <= row["now"]:
            raise KeyInvalid("this key has expired")
        if row["last_used_at"] is None or row["now"] - row["last_used_at"] > TOUCH_EVERY:
            await self._store.run(lambda: _asked("key_touch", {"id": key_id}))
        return Caller(key_id, row["kind"], Scope(row["scope"]), row["owner"], row["name"])

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

    async def list(self, *, owner: str | None = None, kind: str = "key") -> tuple[KeyView, ...]:
        rows = await self._store.read(lambda: _asked("key_list", {"owner": owner, "kind": kind}))
        return tuple(_view(row) for row in rows)

    async def revoke(self, key_id: str, *, owner: str | None = None) -> None:
        """At once, and for good."""
        if not await self._store.run(lambda: _asked("key_revoke", {"id": key_id, "owner": owner})):
            raise NotFound(f"there is no key {key_id}, or it was revoked before")

    async def revoke_if_valid(self, key_id: str) -> None:
        """The same for whoever does not care if somebody else did it before."""
        await self._store.run(lambda: _asked("key_revoke", {"id": key_id, "owner": None}))

    async def is_locked_out(self) -> bool:
        """Whether nobody could log in: no administrator has a key or a session."""
        [row] = await self._store.read(lambda: _asked("key_any", {}))
        return not row["found"]

    async def prune(self) -> int:
        """Forget links and sessions that ended long ago; how many."""
        return len(await self._store.run(lambda: _asked("key_prune", {"age": PRUNE_AFTER})))


def written(scope: str, key_id: str, secret: str) -> str:
    body = f"tcn_{scope}_{key_id}_{secret}"
    return f"{body}_{_check(body)}"


def read(text: str) -> tuple[str, str, str]:
    """Scope, id and secret of a key; `KeyInvalid` if it cannot be one."""
    match = _SHAPE.fullmatch(text)
    if match is None or not hmac.compare_digest(_check(text.rpartition("_")[0]), match[4]):
        raise KeyInvalid(
            "this is not a key: one looks like tcn_owner_…, and this one is incomplete or has a slip in it"
        )
    return match[1], match[2], match[3]


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
