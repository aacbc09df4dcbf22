"""Uploads in progress."""
