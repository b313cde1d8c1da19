"""Secrets by reference: `${NAME}` in the config of a source or a step stands for HEADWATER_SECRET_NAME.

Only variables with that prefix can be meant, so an account that may add sources or templates cannot send the database's
password, or anything else of the environment, to a server of theirs. The reference is what is stored, shown and
exported; its value is filled in for the length of a visit or a step.
"""

import re
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, Final, TypeVar
from urllib.parse import quote, quote_plus

from headwater.collectors.base import SourceConfig, is_secret
from headwater.config import SECRET_PREFIX
from headwater.errors import FailureKind, VisitError

REFERENCE: Final = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")
TELLING_CHARACTERS = 4  # a shorter secret is in every other text, and hiding it would tell what it is

Config = TypeVar("Config", bound=SourceConfig)


def fill_references(config: Config, secrets: Mapping[str, str]) -> Config:
    """The config with the secrets it refers to; VisitError names the variable that is missing."""
    filled = {
        key: _fill(value, secrets, key)
        for key in _secret_keys(type(config))
        if (value := getattr(config, key)) and refers(value)
    }
    return config.model_copy(update=filled) if filled else config


def fill_text(text: str, secrets: Mapping[str, str], missing: Callable[[str], Exception]) -> str:
    """`text` with the secrets it refers to; raises what `missing` makes of the variable that is not there."""

    def look_up(reference: re.Match[str]) -> str:
        name = reference[1].removeprefix(SECRET_PREFIX)
        if not secrets.get(name):
            raise missing(SECRET_PREFIX + name)
        return secrets[name]

    return REFERENCE.sub(look_up, text)


@cache
def _secret_keys(model: type[SourceConfig]) -> tuple[str, ...]:
    return tuple(key for key in model.model_fields if is_secret(key, model))


def hide_secrets(text: str, secrets: Mapping[str, str]) -> str:
    """`text` without the value of any secret."""
    for value in sorted(secrets.values(), key=len, reverse=True):
        for spelling in spellings(value):
            text = text.replace(spelling, "***")
    return text


def spellings(secret: str) -> set[str]:
    """The ways in which a secret can stand in a text, as it is or as part of an address."""
    if len(secret) < TELLING_CHARACTERS:
        return set()
    return {secret, quote(secret), quote(secret, safe=""), quote_plus(secret)}


def refers(value: Any) -> bool:
    """Whether a config, or a value in it, names a secret."""
    if isinstance(value, Mapping):
        return any(map(refers, value.values()))
    return isinstance(value, str) and REFERENCE.search(value) is not None


def _fill(value: Any, secrets: Mapping[str, str], key: str) -> Any:
    if isinstance(value, Mapping):
        return {name: _fill(each, secrets, f"{key}.{name}") for name, each in value.items()}
    if not isinstance(value, str):
        return value

    def missing(variable: str) -> VisitError:
        return VisitError(
            FailureKind.UNAUTHORIZED,
            "the config refers to {variable} in {key}, but there is no such variable in the environment of"
            " this process",
            variable=variable,
            key=key,
        )

    return fill_text(value, secrets, missing)
