"""Leases: claim, heartbeat, keep, settle, release, recovery."""
