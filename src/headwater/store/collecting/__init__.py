"""Sources, their queue, plans and statistics: what visits read and write."""
