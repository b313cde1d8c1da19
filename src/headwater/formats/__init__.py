"""Bytes to items and back. Pure: no network, no clock, no database.

feeds     RSS, Atom and JSON Feed, read and written
pages     web pages: their metadata, the items they list, the feeds they name
sitemaps  sitemaps, and what is remembered of them between two visits
xml       bytes to an element tree, however damaged
opml      subscription lists, both ways
charset, dates, html, links, limits   what these share
"""
