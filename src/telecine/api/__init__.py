"""Telecine over HTTP: what people and programs ask, what remote workers say, what browsers watch.

One module per subject, each with a `router`; `app` puts them together. Nothing here decides: the engine does.
"""

from telecine.api.app import create_app
from telecine.api.http.context import ServerContext

__all__ = ["ServerContext", "create_app"]
