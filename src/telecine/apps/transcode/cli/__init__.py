"""Commands of the transcode app."""
