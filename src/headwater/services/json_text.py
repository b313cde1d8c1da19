"""JSON values as people read them, in plain text. Pure."""

from typing import Any

MOST_LEVELS = 5


def data_as_text(value: Any, level: int = 0) -> str:
    """A JSON value as lines: `key: value`, lists with hyphens, deeper levels indented."""
    if isinstance(value, dict) and value and level < MOST_LEVELS:
        return "\n".join(_line(f"{_name(str(key))}:", each, level) for key, each in value.items())
    if isinstance(value, list) and value and level < MOST_LEVELS:
        if all(not isinstance(each, dict | list) for each in value) and level:
            return ", ".join(map(_scalar, value))
        return "\n".join(_line("-", each, level) for each in value)
    return _scalar(value)


def _line(mark: str, value: Any, level: int) -> str:
    text = data_as_text(value, level + 1)
    if "\n" not in text:
        return f"{mark} {text}"
    return f"{mark}\n" + "\n".join("  " + line for line in text.split("\n"))


def _name(key: str) -> str:
    """`one_line_reason` is "One line reason" to people."""
    words = key.replace("_", " ").strip()
    return words[:1].upper() + words[1:]


def _scalar(value: Any) -> str:
    if value is None or value in ({}, []):
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:g}" if isinstance(value, float) else str(value)
