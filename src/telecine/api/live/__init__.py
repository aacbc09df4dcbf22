"""Live events: server-sent events, a WebSocket, and tickets for browsers. See docs/events.md."""

from __future__ import annotations

from telecine.api.live import socket, sse
from telecine.api.live.hub import Hub, hub_of

routers = (sse.router, socket.router)

__all__ = ["Hub", "hub_of", "routers"]
