"""ISO-BMFF: boxes, sample descriptions and decode times."""
