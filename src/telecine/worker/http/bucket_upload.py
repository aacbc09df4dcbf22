"""Bytes straight into a bucket, to an address that the server has signed. Our key does not go there."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import httpx

from telecine.artifacts import Moved

PIECE = 256 << 10
SECONDS = 30.0


async def send(url: str, path: Path, size: int, moved: Moved) -> None:
    """PUT the file there; an `httpx.HTTPError` if it is not taken."""
    async with httpx.AsyncClient(timeout=httpx.Timeout(SECONDS, connect=5.0)) as client:
        headers = {"Content-Length": str(size)}
        (await client.put(url, content=_pieces(path, size, moved), headers=headers)).raise_for_status()


async def _pieces(path: Path, size: int, moved: Moved) -> AsyncIterator[bytes]:
    done = 0
    with await asyncio.to_thread(path.open, "rb") as file:
        while piece := await asyncio.to_thread(file.read, PIECE):
            done += len(piece)
            moved(done, size)
            yield piece
