"""A real browser that plays what we publish: hls.js in a Chromium that knows H.264, both from npm."""
