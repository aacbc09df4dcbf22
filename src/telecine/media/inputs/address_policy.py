"""Which places may be asked for a source: those that the internet can ask, too, and those that the operator allows."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from telecine.addresses import Resolve, first_inside, resolve
from telecine.errors import MediaRefused
from telecine.media.inputs.download import TransferBroken


@dataclass(frozen=True, slots=True, kw_only=True)
class InputPolicy:
    """What the settings allow, and how patient we are."""

    most_bytes: int = 200 << 30
    private: tuple[str, ...] = ()  # hosts, addresses and networks of one's own that may be asked
    bucket: Callable[[str], Any] | None = None  # `s3://name` to an object store, as artifacts are opened
    connect_seconds: float = 10.0
    read_seconds: float = 30.0
    pause_seconds: float = 0.5  # before a broken download goes on; doubled each time that brought nothing
    resolve: Resolve = resolve

    async def addresses(self, host: str, port: int) -> list[str]:
        """Where to connect to for this host; refused if any of its addresses may not be asked."""
        try:
            async with asyncio.timeout(self.connect_seconds):
                found = await self.resolve(host, port)
        except (OSError, UnicodeError, TimeoutError) as error:
            raise TransferBroken(f"the host {host} is not known ({str(error) or 'no answer'})") from error
        if (inside := first_inside(host, found, self.private)) is not None:
            raise MediaRefused(
                f"the source's host {host} is at {inside}, which is not on the public internet; "
                "list it in allow_private_sources if jobs may read there",
                code="source_private",
            )
        return list(found)
