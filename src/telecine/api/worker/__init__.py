"""What remote workers say: the engine's words over HTTP, under the names of the worker API.

    register   an administrator makes a key
    enlist ──▶ claim ──▶ heartbeat … keep … ──▶ complete | fail | release ──▶ retire

A worker is not believed: its number must belong to its key, and it sees and changes only what it holds a lease on.
"""

from __future__ import annotations

from telecine.api.worker.artifact_bytes import router as storing
from telecine.api.worker.artifacts import router as keeping
from telecine.api.worker.leases import router as working
from telecine.api.worker.registration import router as joining
from telecine.api.worker.sources import router as sources

routers = (joining, working, keeping, storing, sources)
