"""What a database says about itself: its clock, its promise to keep what was committed, its oldest transaction."""

from __future__ import annotations

from dataclasses import dataclass

from telecine.facts import Instant, Millis
from telecine.store import Store, ask

# What a commit may wait for and still survive a power cut of the server.
_SURVIVES = {"on", "local", "remote_write", "remote_apply", "full", "extra"}


@dataclass(frozen=True, slots=True)
class DatabaseVitals:
    """`whole_pages` is PostgreSQL's full_page_writes, or SQLite's journal mode; `oldest` is how long the oldest
    transaction of another connection has been open."""

    product: str
    now: Instant
    synchronous: str
    fsync: str
    whole_pages: str
    bytes: int
    oldest: Millis | None

    @property
    def is_durable(self) -> bool:
        return self.synchronous in _SURVIVES and self.fsync == "on" and self.whole_pages in ("on", "wal")


async def vitals(store: Store) -> DatabaseVitals:
    [row] = await ask(store, "vitals", {})
    return DatabaseVitals(**dict(row))
