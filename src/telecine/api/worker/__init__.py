"""What remote workers say: the engine's words over HTTP, under the names of the worker API.

    register   an administrator makes a key
    enlist ──▶ claim ──▶ heartbeat … keep … ──▶ complete | fail | release ──▶ retire

A worker is not believed: its number must belong to its key, and it sees and changes only what it holds a lease on.
"""

from __future__ import annotations

from telecine.api.worker.joining import router as joining
from telecine.api.worker.keeping import router as keeping
from telecine.api.worker.sources import router as sources
from telecine.api.worker.storing import router as storing
from telecine.api.worker.working import router as working

routers = (joining, working, keeping, storing, sources)
