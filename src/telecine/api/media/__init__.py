"""Films over HTTP: lists, pieces and pictures, to whoever may watch them."""

from __future__ import annotations

from telecine.api.media.routes import router

__all__ = ["router"]
