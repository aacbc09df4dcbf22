"""How often somebody may ask: a bucket of tokens for each, in this server's memory."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable

from telecine.errors import TooMany

MAX_KNOWN = 50_000
MINUTE = 60.0


class RateLimits:
    """Keys by their id, strangers by their address. The oldest are forgotten when there are too many."""

    def __init__(self, mono: Callable[[], float], *, per_key: int, per_stranger: int, per_worker: int = 60_000) -> None:
        self._mono = mono
        self._per_key = per_key
        self._per_stranger = per_stranger
        self._per_worker = per_worker
        self._known: OrderedDict[str, tuple[float, float]] = OrderedDict()  # tokens left, and when

    def key(self, key_id: str) -> None:
        """One request of a key; `TooMany` if it has none left."""
        self._take(f"key {key_id}", self._per_key)

    def worker(self, key_id: str) -> None:
        """One request of the key of workers, who ask more often than people."""
        self._take(f"key {key_id}", self._per_worker)

    def stranger(self, address: str) -> None:
        """One request without a valid key."""
        self._take(f"address {address}", self._per_stranger)

    def _take(self, who: str, per_minute: int) -> None:
        now = self._mono()
        left, at = self._known.pop(who, (float(per_minute), now))
        left = min(float(per_minute), left + (now - at) * per_minute / MINUTE)
        self._known[who] = (max(0.0, left - 1.0), now)
        if len(self._known) > MAX_KNOWN:
            self._known.popitem(last=False)
        if left < 1.0:
            wait = (1.0 - left) * MINUTE / per_minute
            raise TooMany(f"too many requests: {per_minute} in a minute are answered; try again in a moment", wait)
