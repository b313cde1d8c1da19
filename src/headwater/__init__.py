"""Headwater collects the web's feeds, sitemaps and other sources on time and with as few requests as possible."""

__version__ = "0.1.0"
