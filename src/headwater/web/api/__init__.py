"""The HTTP API, one module a subject. Every answer that is an error is a Problem Details document."""
