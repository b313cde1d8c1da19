"""The version, for every room: it imports nothing."""

__version__ = "0.1.0"
