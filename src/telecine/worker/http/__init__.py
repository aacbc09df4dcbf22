"""A worker without a database: the same loop, with the engine and the artifacts behind a server.

engine_client     HttpEngine: calls as JSON, repeated with the same request id or token until there is an answer
artifact_client   artifacts up in parts, resumed where they broke off; down in ranges
connection        one HTTP client; heartbeats have their own, so that no upload can keep a beat waiting

Nothing here imports the engine.
"""

from telecine.worker.http.connection import Server, ShutOutSignal
from telecine.worker.http.engine_client import HttpBell, HttpEngine

__all__ = ["HttpBell", "HttpEngine", "Server", "ShutOutSignal"]
