"""What commands ask about the database itself, without seeing the store."""

from __future__ import annotations

from typing import TYPE_CHECKING

from telecine.store.health import DatabaseVitals, vitals
from telecine.store.open import dialect_of

if TYPE_CHECKING:
    from telecine.wiring import Parts

__all__ = ["DatabaseVitals", "database_vitals", "is_sqlite"]


def is_sqlite(url: str) -> bool:
    return dialect_of(url) == "sqlite"


async def database_vitals(parts: Parts) -> DatabaseVitals:
    """Its product, clock, durability and oldest transaction."""
    return await vitals(parts.store)
