"""HLS: playlists from recorded facts, export to a folder, and a linter."""
