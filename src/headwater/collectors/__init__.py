"""What Headwater can collect from: one file a kind of source, found by `collectors.types`."""
