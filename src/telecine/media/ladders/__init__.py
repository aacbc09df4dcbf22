"""Ladders: which renditions a source gets, and how each is encoded."""
