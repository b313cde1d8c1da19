"""Child processes: for work that blocks, leaks, or cannot be trusted to stop."""
