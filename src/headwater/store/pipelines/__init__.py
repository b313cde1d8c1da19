"""Pipeline templates and runs."""
