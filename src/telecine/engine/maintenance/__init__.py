"""Background duties: audit, retention, deletion of unused bytes, watch folders."""
