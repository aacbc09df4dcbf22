"""The engine once more, in memory, without SQL: what the stateful test compares the database with.

The rules come from `decide` and `advance`, which are tested by themselves; all the rest (who is claimed in which
order, what is renewed, counted, opened, parked and answered) is written here a second time, simply.
"""

from tests.model.engine import Model
from tests.model.rows import FLOWS, Lease, Place

__all__ = ["FLOWS", "Lease", "Model", "Place"]
