"""RSS, Atom and JSON Feed: bytes to a Feed and back."""
