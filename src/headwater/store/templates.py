"""Pipeline templates: what is to be done with the items of the sources they are attached to."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import orjson
from sqlalchemy import Connection, Row, func, select

from headwater.errors import ConflictError, InputError, NotFoundError
from headwater.store.bulk import storable
from headwater.store.outlets import outlets_missing
from headwater.store.tables import pipeline_templates, sources

_LONGEST_NUMBER = 18  # decimal digits that every database can compare


@dataclass(frozen=True, slots=True)
class Template:
    """A template as stored. Each step: step_type, is_critical, config, timeout_seconds, retries."""

    id: int
    name: str
    description: str | None
    steps: tuple[dict[str, Any], ...]
    run_on_change: bool
    created_at: float
    updated_at: float


@dataclass(frozen=True, slots=True)
class NewTemplate:
    """A template that was found good, to be stored."""

    name: str
    steps: tuple[dict[str, Any], ...]
    description: str | None = None
    run_on_change: bool = False
    outlets: tuple[str, ...] = ()  # to which its steps publish


def add_template(connection: Connection, template: NewTemplate, now: float) -> Template:
    _refuse_name_of_another(connection, template.name, None)
    _refuse_missing_outlets(connection, template)
    added = connection.execute(
        pipeline_templates.insert().values(**_values(template), created_at=now, updated_at=now)
    ).inserted_primary_key
    return get_template(connection, added[0] if added else 0)


def change_template(connection: Connection, template_id: int, template: NewTemplate, now: float) -> Template:
    """Replace a template. Runs that have begun keep the steps they began with."""
    _refuse_name_of_another(connection, template.name, template_id)
    _refuse_missing_outlets(connection, template)
    connection.execute(
        pipeline_templates.update()
        .where(pipeline_templates.c.id == template_id)
        .values(**_values(template), updated_at=now)
    )
    return get_template(connection, template_id)


def remove_template(connection: Connection, template_id: int) -> Template:
    """Take a template away, from its sources too. Its runs stay, and those under way go on."""
    removed = get_template(connection, template_id)
    connection.execute(pipeline_templates.delete().where(pipeline_templates.c.id == template_id))
    return removed


def get_template(connection: Connection, template_id: int) -> Template:
    row = connection.execute(select(pipeline_templates).where(pipeline_templates.c.id == template_id)).first()
    if row is None:
        raise NotFoundError(
            "there is no template {name}; `headwater pipeline list` shows them all", name=template_id
        )
    return _template(row)


def find_template(connection: Connection, name_or_id: str) -> Template:
    """The template of this name or number."""
    rows = connection.execute(
        select(pipeline_templates).where(
            (pipeline_templates.c.name == name_or_id) | (pipeline_templates.c.id == _number(name_or_id))
        )
    ).all()
    for row in sorted(rows, key=lambda row: row.name != name_or_id):
        return _template(row)
    raise NotFoundError(
        "there is no template {name}; `headwater pipeline list` shows them all", name=name_or_id
    )


def _number(text: str) -> int:
    """What can be a template's number; -1 is nobody's."""
    return int(text) if text.isdecimal() and len(text) <= _LONGEST_NUMBER else -1


def list_templates(connection: Connection) -> list[Template]:
    return [_template(row) for row in connection.execute(select(pipeline_templates).order_by("id"))]


def sources_by_template(connection: Connection) -> dict[int, int]:
    """How many sources each template is attached to."""
    query = (
        select(sources.c.pipeline_template_id, func.count())
        .where(~sources.c.is_deleted, sources.c.pipeline_template_id.is_not(None))
        .group_by(sources.c.pipeline_template_id)
    )
    return {row[0]: row[1] for row in connection.execute(query)}


def attach_template(connection: Connection, source_ids: Sequence[int], template_id: int | None) -> None:
    """New items of these sources start a run of the template from now on; None: of none."""
    connection.execute(
        sources.update().where(sources.c.id.in_(source_ids)).values(pipeline_template_id=template_id)
    )


def _refuse_name_of_another(connection: Connection, name: str, template_id: int | None) -> None:
    taken = connection.execute(
        select(pipeline_templates.c.id).where(pipeline_templates.c.name == name)
    ).scalar()
    if taken is not None and taken != template_id:
        raise ConflictError(
            "template {id} has the name {name} already; change it with `headwater pipeline edit`",
            id=taken,
            name=name,
        )


def _refuse_missing_outlets(connection: Connection, template: NewTemplate) -> None:
    for missing in outlets_missing(connection, template.outlets):
        raise InputError(
            "a step publishes to the outlet {name}, but there is none; add it first:"
            " headwater outlet add {name} --by-pipelines",
            name=missing,
        )


def _values(template: NewTemplate) -> dict[str, Any]:
    return {
        "name": storable(template.name),
        "description": storable(template.description),
        "steps": orjson.dumps(template.steps).decode(),
        "run_on_change": template.run_on_change,
    }


def _template(row: Row[Any]) -> Template:
    return Template(
        id=row.id,
        name=row.name,
        description=row.description,
        steps=tuple(orjson.loads(row.steps)),
        run_on_change=bool(row.run_on_change),
        created_at=row.created_at,
        updated_at=row.updated_at,
    )
