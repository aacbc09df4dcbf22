"""Which frames a source has, and the grid of segments and chunks that the output is cut into."""
