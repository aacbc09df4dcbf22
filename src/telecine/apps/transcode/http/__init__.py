"""HTTP routes for videos and their media files."""
