"""Managing sources: adding, editing, finding and importing them, and lists in and out."""
