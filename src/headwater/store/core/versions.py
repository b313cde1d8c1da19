"""Versions of what people edit, so that of two edits at once neither undoes the other unseen.

A version is a hash of what can be edited; visits and other work do not change it. Who edits names the version they
saw; `check_version` refuses an edit of another one, with the row locked until the edit is committed.
"""

from hashlib import blake2b
from typing import Any

import orjson
from sqlalchemy import Connection, select

from headwater.config import INTERVAL_NAME
from headwater.errors import ChangedError
from headwater.model import Source
from headwater.store.collecting.sources import get_source
from headwater.store.core.settings import interval_settings
from headwater.store.core.tables import outlets, pipeline_templates, settings, sources
from headwater.store.pipelines.templates import Template, get_template
from headwater.store.reading.outlets import Outlet, get_outlet
from headwater.store.reading.selection import to_json

ANY = "*"  # whichever it is now


def version_of(thing: Source | Template | Outlet) -> str:
    match thing:
        case Template():
            parts: tuple[Any, ...] = (thing.name, thing.description, thing.steps, thing.run_on_change)
        case Outlet():
            shows = to_json(thing.selection)
            parts = (thing.title, thing.description, shows, thing.item_limit, thing.hub_url, thing.token)
            parts += (thing.content, thing.template, thing.own_media)
        case _:
            plan = (thing.policy, thing.pipeline_template_id, thing.schedule_enabled, thing.is_deleted)
            parts = (thing.name, thing.url, thing.folder, thing.config, *plan)
    return _hash(parts)


def version_of_interval(minutes: float | None) -> str:
    """Of a type's interval as set in the database; None: it is not set."""
    return _hash((minutes,))


def check_source_version(connection: Connection, source_id: int, expected: str | None) -> None:
    """Refuse an edit of a source that is no longer as its editor saw it."""
    if expected is not None:
        connection.execute(select(sources.c.id).where(sources.c.id == source_id).with_for_update())
        _compare(version_of(get_source(connection, source_id)), expected)


def check_template_version(connection: Connection, template_id: int, expected: str | None) -> None:
    """The same for a template."""
    if expected is not None:
        table = pipeline_templates
        connection.execute(select(table.c.id).where(table.c.id == template_id).with_for_update())
        _compare(version_of(get_template(connection, template_id)), expected)


def check_outlet_version(connection: Connection, name: str, expected: str | None) -> None:
    """The same for an outlet."""
    if expected is not None:
        connection.execute(select(outlets.c.id).where(outlets.c.name == name).with_for_update())
        _compare(version_of(get_outlet(connection, name)), expected)


def check_interval_version(connection: Connection, type_name: str, expected: str | None) -> None:
    """The same for a type's interval."""
    if expected is not None:
        key = INTERVAL_NAME + type_name
        connection.execute(select(settings.c.key).where(settings.c.key == key).with_for_update())
        _compare(version_of_interval(interval_settings(connection).get(type_name)), expected)


def _compare(current: str, expected: str) -> None:
    if expected not in (current, ANY):
        raise ChangedError(
            "it was changed after you had read it; read it again, and repeat what you want to change"
        )


def _hash(parts: tuple[Any, ...]) -> str:
    data = orjson.dumps(parts, default=str, option=orjson.OPT_SORT_KEYS | orjson.OPT_NON_STR_KEYS)
    return blake2b(data, digest_size=8).hexdigest()
