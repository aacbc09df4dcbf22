"""Telecine's own side. The rules are the peers' rules.

Everything here uses the shipped defaults and public interfaces, with no switch that exists only for the
benchmark. A drain goes through `crew.drain`, which is what the peers go through: jobs are enqueued and
the database is at rest (`vacuum analyze`) before the workers start, each worker process calls
`post.ready()` when it is connected, its inline no-op handler calls `post.started(index)`, and `done`
counts the finished jobs over a connection of its own. Afterwards the audit must agree: one attempt and
one outcome per job, nothing else (`Drained.once`).
"""

from benchmarks.engine.ours.claims import claim_cost, claim_pinned
from benchmarks.engine.ours.drains import bulk_postgres, drain_postgres, drain_sqlite, submit_singly
from benchmarks.engine.ours.pickups import pickup_postgres, pickup_sqlite
from benchmarks.engine.ours.recoveries import recovery

__all__ = [
    "bulk_postgres",
    "claim_cost",
    "claim_pinned",
    "drain_postgres",
    "drain_sqlite",
    "pickup_postgres",
    "pickup_sqlite",
    "recovery",
    "submit_singly",
]
