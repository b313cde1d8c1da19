"""XML as it is found: bytes to an element tree, however damaged."""
