"""Letters that come to Headwater, beside visits: a server that takes them in, and mailboxes that tell of new ones."""
