"""Headwater collects feeds, sitemaps and other web sources on time and with as few requests as possible."""

__version__ = "0.1.0"
