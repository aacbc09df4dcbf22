"""API keys, sessions, one-time links and tickets."""
