"""Compiled copies of the modules in `kernel`, put here by the build. Empty where there was no compiler."""
