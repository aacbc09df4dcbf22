"""Files of watched folders that were looked at: so each is taken once, also if nothing came of it."""

from __future__ import annotations

from collections.abc import Sequence

from telecine.facts import DAY
from telecine.store import Ask, Steps, Store, ask


class WatchedFiles:
    def __init__(self, store: Store) -> None:
        self._store = store

    async def known(self, paths: Sequence[str]) -> dict[str, str]:
        """What those of these files looked like that were seen before."""

        def steps() -> Steps[dict[str, str]]:
            rows = yield Ask("watched_find", {"paths": list(paths)})
            return {row["path"]: row["identity"] for row in rows}

        return await self._store.read(steps)

    async def touch(self, paths: Sequence[str]) -> None:
        """They are still there: what nobody has seen for a year is forgotten."""
        await ask(self._store, "watched_touch", {"paths": list(paths), "age": DAY})

    async def put(
        self,
        path: str,
        identity: str,
        *,
        job_id: int | None = None,
        subject_id: str | None = None,
        error: str | None = None,
    ) -> None:
        """It became this, or nothing, for this reason."""
        outcome = {"job_id": job_id, "subject_id": subject_id, "error": error}
        await ask(self._store, "watched_put", {"path": path, "identity": identity, **outcome})
