"""What leaves Headwater: outlets, digests, messages and alerts."""
