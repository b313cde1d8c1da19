"""Pipelines: work that starts automatically when something new appears."""
