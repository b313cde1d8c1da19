"""Bytes to items and back. Pure: no network, no clock, no database.

feed      the door to reading: bytes → Feed (entry) through
            tree (charset, entities, soup) → rss | atom (elements, media, timing, names), or jsonfeed
write     Feed → RSS 2.0, Atom 1.0, JSON Feed 1.1, after publish has made it complete and harmless
sitemap   sitemaps and their indexes, piece by piece
opml      subscription lists, both ways
discover  the feeds of a page, from its HTML and by the rules of known sites
dates, links, html   what the others share
"""
