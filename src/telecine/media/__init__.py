"""Media: what a source is, which frames and pieces come of it, and the sandboxed child that makes them.

    probe ──▶ Source ─┐
    index ──▶ Index ──┼─▶ planner (pure) ──▶ orders ──▶ child ──▶ segments ──▶ playlists (pure)
    ladder (data) ────┘

Everything here is pure, except `child`, which alone touches FFmpeg and runs in a process of its own.
"""
