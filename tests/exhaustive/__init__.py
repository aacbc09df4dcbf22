"""Every history of one small job: breadth-first over the production rules.

A world is one job (a chain of stages of one task each) and its workers. A message may arrive late, twice or never,
and so may its answer: whatever a worker might ever have sent about a lease that it knew can arrive at any later step. A
worker may crash or be paused between any two steps, sweepers may speak about any lease at any
moment, time may pass at any moment, and people cancel and retry.

What is checked after every step is in `invariants`; the rules themselves come from `decide` and `advance` only.
"""

from tests.exhaustive.invariants import Broken
from tests.exhaustive.machine import NOW, Decide, Machine
from tests.exhaustive.search import search
from tests.exhaustive.world import Bounds

__all__ = ["NOW", "Bounds", "Broken", "Decide", "Machine", "search"]
