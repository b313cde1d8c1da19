"""Numbers for people: overview, trends, health, and the table of sources."""
