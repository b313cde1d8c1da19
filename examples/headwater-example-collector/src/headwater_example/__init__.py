"""A type of source and a step for Headwater, as an example of both."""
