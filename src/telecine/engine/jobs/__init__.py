"""Jobs: submit, start, change, delete; and what follows when their tasks end."""
