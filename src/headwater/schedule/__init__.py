"""When to visit a source next. Pure: history, now and a random generator in, a plan and its reason out."""
