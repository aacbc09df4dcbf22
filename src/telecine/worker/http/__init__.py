"""A worker without a database: the same loop, with words and artifacts over HTTP.

words ──▶ /api/worker/…  JSON; repeated with the same request id or token until there is an answer
place ──▶ artifacts up in parts, resumed where they broke off; down in ranges
heart ──▶ a connection of its own, so that no upload can keep a beat waiting
"""

from telecine.worker.http.connection import Barred, Server
from telecine.worker.http.engine_client import FarBell, FarWords

__all__ = ["Barred", "FarBell", "FarWords", "Server"]
