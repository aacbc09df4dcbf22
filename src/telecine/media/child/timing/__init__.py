"""When each packet and frame of a source is shown."""
