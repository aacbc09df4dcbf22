"""What a handler sees and leaves behind: its bench, outcome, scratch folder and recorded artifacts."""
