"""Sitemaps, and what is remembered of them between two visits."""
