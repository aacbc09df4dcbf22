"""The engine beside its peers and beside the limit of the database, in one run.

        __main__ ── rounds: ours, a peer, the raw limit, ... in rotated order, at least five times
           │
           ├─ ours.py          in this environment
           ├─ server.py        one PostgreSQL (and one Redis) for the whole run ──▶ hold.py
           └─ desk.py          asks a runner for one measurement ────────────────▶ runner.py
                                                                                     │
              the arrows cross into benchmarks/.peers-venv (environment.py)        peers/*.py, raw.py,
                                                                                   notify.py

A drain is counted the same way for everybody (crew.py): the jobs are there before the workers,
the workers are connected before the word "go", and the clock runs from the first handler's start
until an outsider sees the last job done in the database.
"""
