"""Addresses: which are understood, and how one is shown."""

from __future__ import annotations

import re
from ipaddress import ip_network

_PASSWORD = re.compile(r"(://[^:@/?#]*):.*@")
_SECRET = re.compile(r"([?&](?:[a-z_]*(?:password|secret|token|key)[a-z_]*)=)[^&]*", re.IGNORECASE)


def redacted(url: str) -> str:
    """The address without its secrets; rather too much is hidden than too little."""
    return _SECRET.sub(r"\1***", _PASSWORD.sub(r"\1:***@", url))


def is_place(text: str) -> bool:
    """A host name, an address or a network."""
    try:
        ip_network(text, strict=False)
    except ValueError:
        return re.fullmatch(r"[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?", text) is not None
    return True
