"""Routes of the platform, one module per subject."""
