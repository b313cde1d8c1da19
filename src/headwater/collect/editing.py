"""Changing a source: what is given is checked as when it was added, and takes effect at its next visit."""

from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection

from headwater.collect.planning import POLICIES
from headwater.collectors.base import read_config, shown_config
from headwater.collectors.types import config_model_of
from headwater.errors import InputError
from headwater.model import Source
from headwater.store.bulk import storable
from headwater.store.sources import change_source, get_source

STARS = "***"  # what stands for a secret wherever a config is shown


@dataclass(frozen=True, slots=True)
class Edit:
    """What to change; None leaves it as it is. An empty text clears a folder or a policy."""

    name: str | None = None
    folder: str | None = None
    policy: str | None = None
    config: dict[str, Any] | None = None  # the whole of it; a value shown as stars keeps what is stored


def edit_source(connection: Connection, source_id: int, edit: Edit, now: float) -> Source:
    """Write an edit. InputError names what is wrong with it, and nothing is changed."""
    source = get_source(connection, source_id)
    values: dict[str, Any] = {}
    if edit.name is not None:
        if not (name := (storable(edit.name) or "").strip()):
            raise InputError("a source needs a name")
        values["name"] = name
    if edit.folder is not None:
        values["folder"] = (storable(edit.folder) or "").strip() or None
    if edit.policy is not None:
        if edit.policy and edit.policy not in POLICIES:
            raise InputError(
                "there is no policy {name}: choose from {names}", name=edit.policy, names=", ".join(POLICIES)
            )
        values["policy"] = edit.policy or None
    if edit.config is not None:
        config = _with_secrets(edit.config, source)
        read_config(config_model_of(source.type), config, source.type)
        values["config"] = config
    return change_source(connection, source_id, now, **values) if values else source


def _with_secrets(given: dict[str, Any], source: Source) -> dict[str, Any]:
    """The config as meant: where it shows the stars of a secret, the secret that is stored."""
    shown = shown_config(source.config, config_model_of(source.type))
    return {
        key: source.config[key] if key in shown and value == shown[key] and value == STARS else value
        for key, value in given.items()
    }
