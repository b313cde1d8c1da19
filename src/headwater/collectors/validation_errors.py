"""Validation errors in plain words instead of pydantic's. Pure."""

from collections.abc import Mapping
from typing import Any, Final

from headwater.errors import Text

_LARGEST: Final = 2**63 - 1  # what databases keep

_WORDS: Final[Mapping[str, Text]] = {
    "missing": Text("it is missing"),
    "extra_forbidden": Text("there is no field of this name"),
    "json_invalid": Text("it is not JSON"),
    "model_attributes_type": Text("it takes an object: names and values in braces"),
    "string_type": Text("it takes text, in quotation marks"),
    "int_type": Text("it takes a whole number"),
    "int_parsing": Text("it takes a whole number"),
    "int_from_float": Text("it takes a whole number"),
    "float_type": Text("it takes a number"),
    "float_parsing": Text("it takes a number"),
    "finite_number": Text("it takes a number"),
    "bool_type": Text("it takes true or false"),
    "bool_parsing": Text("it takes true or false"),
    "dict_type": Text("it takes an object: names and values in braces"),
    "list_type": Text("it takes a list, in square brackets"),
    "string_pattern_mismatch": Text("it does not have the form that is needed"),
}


def describe_mistake(error: Mapping[str, Any]) -> Text:
    """One of pydantic's errors as a person would say it."""
    kind, limits = str(error["type"]), error.get("ctx") or {}
    if kind in _WORDS:
        return _WORDS[kind]
    match kind:
        case "greater_than_equal":
            return Text("it takes {limit:g} or more", limit=limits["ge"])
        case "greater_than":
            return Text("it takes more than {limit:g}", limit=limits["gt"])
        case "less_than_equal" if limits["le"] >= _LARGEST:
            return Text("it takes a smaller number")
        case "less_than_equal":
            return Text("it takes {limit:g} or less", limit=limits["le"])
        case "less_than":
            return Text("it takes less than {limit:g}", limit=limits["lt"])
        case "too_short" | "string_too_short":
            return Text("it takes at least {limit}", limit=limits["min_length"])
        case "too_long" | "string_too_long":
            return Text("it takes {limit} at most", limit=limits["max_length"])
        case "literal_error":
            return Text("choose from {names}", names=str(limits["expected"]).replace("'", ""))
    return Text("{problem}", problem=str(error["msg"]).removeprefix("Value error, "))
