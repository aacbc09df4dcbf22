"""Videos over HTTP: what there is, what becomes of it, which version is shown."""

from __future__ import annotations

from telecine.api.videos.routes import router

__all__ = ["router"]
