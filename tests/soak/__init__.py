"""Everything at once, under load and faults, for as long as is asked: `make soak`."""
