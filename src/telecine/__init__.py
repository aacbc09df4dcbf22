"""Telecine turns media files into published, streamable media, and never loses work."""

from telecine.facts import Done, Failed, Piece
from telecine.flow import Bench, Flow

__all__ = ["Bench", "Done", "Failed", "Flow", "Piece"]
