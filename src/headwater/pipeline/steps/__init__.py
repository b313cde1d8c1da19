"""Step types, one file each."""
