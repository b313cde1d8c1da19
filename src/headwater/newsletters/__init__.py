"""Newsletters: a mail server that receives them, and mailboxes that announce new messages (IMAP IDLE)."""
