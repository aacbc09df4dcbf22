"""Measurements that are run by hand; nothing here is part of the package or a gate of its tests."""
