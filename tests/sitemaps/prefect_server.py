"""Starts Prefect's own server for a test: `python prefect_server.py PORT`.

It asks FastAPI for `min_items` and `max_items`, names that newer versions have dropped; here it is told the new ones.
"""

import sys
from typing import Any

import fastapi
from fastapi import param_functions


def body(*args: Any, **options: Any) -> Any:
    for old, new in (("min_items", "min_length"), ("max_items", "max_length")):
        if old in options:
            options[new] = options.pop(old)
    return param_functions.Body(*args, **options)


if __name__ == "__main__":
    fastapi.Body = body
    from prefect.cli import app

    sys.argv = ["prefect", "server", "start", "--host", "127.0.0.1", "--port", sys.argv[1], "--no-ui"]
    app()
