"""Sitemaps become feeds without a collector: state in a directory of its own, one command or one Prefect flow."""
