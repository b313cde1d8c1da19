"""Keys, sessions and sign-in links."""
