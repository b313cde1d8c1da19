"""Collection: a visit (fetch, decide, save, plan) and the loop that claims and drains."""
