"""The wheel and each of its extras in an empty environment, as users have them: `make extras`."""
