"""Helpers for stories about what becomes of old things."""

from __future__ import annotations

from telecine.engine.jobs.graph_cache import GraphCache
from telecine.engine.maintenance.retention import NOTHING, Ages, Retired, retire
from tests.support.scene import Scene


async def retire_all(scene: Scene, ages: Ages | None = None) -> Retired:
    total = NOTHING
    async for batch in retire(scene.store, GraphCache(), ages):
        total = total + batch
    return total


async def count(scene: Scene, table: str) -> int:
    [row] = await scene.sql(f"select count(*) as n from {table}")
    return int(row["n"])
