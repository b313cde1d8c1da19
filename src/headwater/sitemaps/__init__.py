"""Sitemaps become feeds without a collector: state in its own directory, one command or one Prefect flow."""
