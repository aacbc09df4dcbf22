"""Sources: opened, probed and remuxed."""
