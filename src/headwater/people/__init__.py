"""What is done for people with new items: their rules, and finding the same story in several sources."""
