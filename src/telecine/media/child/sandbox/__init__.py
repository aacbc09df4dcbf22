"""The sandbox that the media child enters before it reads the first byte."""
