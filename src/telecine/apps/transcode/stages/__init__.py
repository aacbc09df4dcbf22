"""The stages of the transcode flow, one module each, and what they share."""
