"""The wheel and each of its extras in an empty environment, as somebody else has them: `make extras`."""
