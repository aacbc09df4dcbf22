"""Links that let somebody without a key watch one video for a while.

    /media/t/w19a2b3c4d.kT0…/big-buck-bunny-3f9a2c41/master.m3u8
             │└ expires  └ HMAC of all that, and of the video
             └ w: what is published; p: what is still being made, too

Lists name what they need relative to themselves, so the whole film inherits the link. Nothing is stored: who changes
the secret in the database ends all links at once.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import re
from dataclasses import dataclass
from typing import Literal

from telecine.facts import HOUR, SECOND, Instant

SECRET = "playback"
Reach = Literal["w", "p"]
_SHAPE = re.compile(r"([wp])([0-9a-f]{1,12})\.([A-Za-z0-9_-]{32})")


@dataclass(frozen=True, slots=True)
class SignedLink:
    """What a genuine link allows, while it has not expired."""

    reach: Reach
    expires_at: Instant


def signed(secret: str, video: str, reach: Reach, expires_at: Instant) -> str:
    """The part of the address that allows it."""
    head = f"{reach}{expires_at // SECOND:x}"
    return f"{head}.{_mark(secret, head, video)}"


def read(secret: str, video: str, text: str) -> SignedLink | None:
    """What the link says about this video; None if nobody of ours has signed that."""
    found = _SHAPE.fullmatch(text)
    if found is None or not hmac.compare_digest(_mark(secret, found[1] + found[2], video), found[3]):
        return None
    return SignedLink("p" if found[1] == "p" else "w", int(found[2], 16) * SECOND)


def ends(now: Instant, hours: float) -> Instant:
    """When a link of today ends: at a full hour, so that it stays the same, and cached, for a while."""
    return (now + round(hours * HOUR)) // HOUR * HOUR + HOUR


def _mark(secret: str, head: str, video: str) -> str:
    key = hashlib.sha256(f"telecine playback\n{secret}".encode()).digest()
    digest = hmac.digest(key, f"{head}\n{video}".encode("utf-8", "surrogatepass"), "sha256")
    return base64.urlsafe_b64encode(digest[:24]).decode()
