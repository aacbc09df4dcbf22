"""Signatures of what we send, as Standard Webhooks has them: HMAC-SHA-256 over `id.timestamp.body`."""

from __future__ import annotations

import base64
import hashlib
import hmac


def signed(name: str, second: int, body: bytes, key: bytes) -> dict[str, str]:
    """The three headers by which a receiver knows that a letter is ours, whole, recent and not a repeated one."""
    content = f"{name}.{second}.".encode() + body
    signature = base64.b64encode(hmac.new(key, content, hashlib.sha256).digest()).decode()
    return {"webhook-id": name, "webhook-timestamp": str(second), "webhook-signature": f"v1,{signature}"}
