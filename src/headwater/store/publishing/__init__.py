"""What leaves Headwater: targets, the outbox, digests, alerts."""
