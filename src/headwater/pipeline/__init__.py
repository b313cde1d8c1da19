"""Pipelines: work that starts by itself when something new appears."""
