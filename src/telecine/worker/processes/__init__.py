"""Child processes of a worker: started, talked to, supervised and ended."""
