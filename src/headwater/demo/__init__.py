"""A small publisher on loopback with lively sources, to try Headwater without the internet."""
