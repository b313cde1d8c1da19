"""Web pages: what they say of themselves, the items they list, the feeds they name."""
