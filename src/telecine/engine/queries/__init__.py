"""Reads for people and programs; nothing here writes."""
