"""Decoded frames: chosen, deinterlaced, turned, scaled, and saved as JPEG."""
