"""Media child processes for inline handlers, and the fork server that they come from."""
