"""Encoders and muxers: frames in, init and media segments out."""
