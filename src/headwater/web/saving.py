"""Saving templates: what their authors wrote is checked beside the event loop and before any transaction.

How long that takes is up to the author: every step's config, expressions and texts with blanks are read.
"""

from typing import Any

from sqlalchemy import Connection

from headwater.pipeline.templates import read_template, with_secrets
from headwater.store.core.database import Store
from headwater.store.core.versions import check_template_version, version_of
from headwater.store.pipelines.templates import NewTemplate, Template, change_template, get_template
from headwater.threads import showing


async def check_written(data: Any, before: Template | None = None) -> NewTemplate:
    """A template as its author wrote it; InputError when something is wrong with it.

    Stars stand for the secrets of the template `before`.
    """
    return await showing.run(_read_changed, data, before)


async def save_template(
    store: Store, template_id: int, data: dict[str, Any], expected: str | None, now: float
) -> Template:
    """Replace a template; stars stand for the secrets of what is stored. ChangedError if that is not `expected`."""
    while True:
        before = await store.read(_read, template_id, expected)
        template = await showing.run(_read_changed, data, before)
        saved = await store.write(_replace, template_id, template, expected, version_of(before), now)
        if saved is not None:
            return saved


def _read(connection: Connection, template_id: int, expected: str | None) -> Template:
    check_template_version(connection, template_id, expected)
    return get_template(connection, template_id)


def _read_changed(data: Any, before: Template | None) -> NewTemplate:
    if before is not None and "steps" in data:
        data = {**data, "steps": with_secrets(data["steps"], before)}
    return read_template(data)


def _replace(
    connection: Connection,
    template_id: int,
    template: NewTemplate,
    expected: str | None,
    seen: str,
    now: float,
) -> Template | None:
    """None: it was changed while this one was checked, and the secrets in it may be old."""
    check_template_version(connection, template_id, expected)
    if version_of(get_template(connection, template_id)) != seen:
        return None
    return change_template(connection, template_id, template, now)
