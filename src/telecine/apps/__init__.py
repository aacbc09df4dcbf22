"""Apps: vertical slices on top of the platform."""
