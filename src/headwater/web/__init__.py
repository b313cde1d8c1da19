"""The dashboard: server-rendered pages and a little JavaScript of our own."""
