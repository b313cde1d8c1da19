"""Coming from another reader: its subscriptions, and what was read there, from the files it can give."""
