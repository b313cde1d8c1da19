"""JSON of any shape in requests, as far as it can be kept."""

from typing import Annotated, Any

import orjson
from pydantic import AfterValidator


def _keepable(value: dict[str, Any]) -> dict[str, Any]:
    try:
        orjson.dumps(value)
    except TypeError as error:  # a number beyond 64 bits, half a character, or nested too deep
        raise ValueError(str(error)) from None
    return value


JsonObject = Annotated[dict[str, Any], AfterValidator(_keepable)]
