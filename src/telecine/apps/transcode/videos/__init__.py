"""Videos: what a transcode job is about, as people see it. Begun, followed by quality, shown while it grows."""
