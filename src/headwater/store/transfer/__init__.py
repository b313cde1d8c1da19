"""The whole database in a file, back, or in another database."""
