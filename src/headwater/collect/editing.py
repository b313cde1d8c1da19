"""Changing sources: what is given is checked as when one is added, and takes effect at the next visit."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final, Literal

from sqlalchemy import Connection

from headwater.collect.adding import read_url, split_credentials
from headwater.collect.planning import POLICIES
from headwater.collectors.base import read_config, shown_config
from headwater.collectors.types import config_model_of
from headwater.errors import ConflictError, InputError, NotFoundError
from headwater.model import Source
from headwater.store.bulk import storable
from headwater.store.sources import (
    change_address,
    change_source,
    get_source,
    remove_source,
    request_refresh,
    restore_source,
    set_schedule_enabled,
)
from headwater.store.templates import get_template

STARS = "***"  # what stands for a secret wherever a config is shown


@dataclass(frozen=True, slots=True)
class Edit:
    """What to change; None leaves it as it is. An empty text clears a folder or a policy."""

    name: str | None = None
    url: str | None = None
    folder: str | None = None
    policy: str | None = None
    template_id: int | None = None  # of the pipeline that its new items start; 0: of none
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
    if edit.template_id is not None:
        if edit.template_id:
            get_template(connection, edit.template_id)
        values["pipeline_template_id"] = edit.template_id or None
    config = edit.config
    if edit.url is not None:
        url, credentials = split_credentials(read_url(edit.url))
        if credentials:
            config = {**(source.config if config is None else config), **credentials}
        if url != source.url:
            change_address(connection, source, url, now)
    if config is not None:
        config = _with_secrets(config, source)
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


SourceAction = Literal["refresh", "pause", "resume", "remove", "restore"]
SOURCE_ACTIONS: Final[tuple[SourceAction, ...]] = ("refresh", "pause", "resume", "remove", "restore")


@dataclass(frozen=True, slots=True)
class Acted:
    """What became of an action on many sources: with which it was done, and why not with the others."""

    done: tuple[int, ...]
    problems: tuple[tuple[int, InputError], ...]


def act_on_sources(
    connection: Connection, action: SourceAction, source_ids: Iterable[int], now: float
) -> Acted:
    """Do the same with each of these sources. One with which it cannot be done stops no other."""
    done: list[int] = []
    problems: list[tuple[int, InputError]] = []
    for source_id in dict.fromkeys(source_ids):
        try:
            act_on_source(connection, action, source_id, now)
        except (NotFoundError, ConflictError) as problem:
            problems.append((source_id, problem))
        else:
            done.append(source_id)
    return Acted(tuple(done), tuple(problems))


def act_on_source(connection: Connection, action: SourceAction, source_id: int, now: float) -> Source:
    """Visit it now, switch it off or on, take it out or bring it back; an InputError says why not."""
    match action:
        case "refresh":
            source = get_source(connection, source_id)
            if not request_refresh(connection, [source_id], now):
                raise ConflictError(
                    "source {id}, {name}, is switched off; switch it on with: headwater source resume {id}",
                    id=source_id,
                    name=source.name,
                )
            return source
        case "pause" | "resume":
            return set_schedule_enabled(connection, source_id, action == "resume", now)
        case "remove":
            return remove_source(connection, source_id, now)
        case "restore":
            return restore_source(connection, source_id, now)
