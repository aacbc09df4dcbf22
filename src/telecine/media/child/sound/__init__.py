"""Audio tracks: resampled to one timeline, mixed and encoded."""
