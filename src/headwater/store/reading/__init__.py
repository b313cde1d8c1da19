"""Items: stored, selected, searched, listed, read by cursors, published, and deleted when they are old."""
