"""`web.sitemap`: the addresses a sitemap lists, each an item."""
