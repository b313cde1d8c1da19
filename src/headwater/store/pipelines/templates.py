"""Pipeline templates: what is done with new items. What each is attached to: see store.pipelines.attaching."""

from dataclasses import dataclass
from typing import Any

import orjson
from sqlalchemy import Connection, Row, func, select

from headwater.errors import ConflictError, InputError, NotFoundError
from headwater.store.core.bulk import storable
from headwater.store.core.tables import pipeline_templates
from headwater.store.publishing.targets import refuse_unknown_targets
from headwater.store.reading.outlets import Outlet, add_outlet, outlets_missing
from headwater.store.reading.selection import Selection

DEFAULT_OUTLET = "default"  # the first template that publishes to it makes it
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
    targets: tuple[str, ...] = ()  # to which its steps send messages


def check_template(connection: Connection, template: NewTemplate, template_id: int | None = None) -> None:
    """Refuse what cannot be stored, as a new template or in the place of another. Nothing is stored."""
    _refuse_name_of_another(connection, template.name, template_id)
    _refuse_missing_outlets(connection, template)
    refuse_unknown_targets(connection, template.targets)


def add_template(connection: Connection, template: NewTemplate, now: float) -> Template:
    check_template(connection, template)
    _add_default_outlet(connection, template, now)
    last = connection.execute(select(func.max(pipeline_templates.c.place))).scalar() or 0
    added = connection.execute(
        pipeline_templates.insert().values(
            **_values(template), place=last + 1, created_at=now, updated_at=now
        )
    ).inserted_primary_key
    return get_template(connection, added[0] if added else 0)


def change_template(connection: Connection, template_id: int, template: NewTemplate, now: float) -> Template:
    """Replace a template. Runs that have begun keep the steps they began with."""
    check_template(connection, template, template_id)
    _add_default_outlet(connection, template, now)
    connection.execute(
        pipeline_templates.update()
        .where(pipeline_templates.c.id == template_id)
        .values(**_values(template), updated_at=now)
    )
    return get_template(connection, template_id)


def get_template(connection: Connection, template_id: int) -> Template:
    row = connection.execute(select(pipeline_templates).where(pipeline_templates.c.id == template_id)).first()
    if row is None:
        raise NotFoundError(
            "there is no template {name}", hint="`headwater pipeline list` shows them all", name=template_id
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
        "there is no template {name}", hint="`headwater pipeline list` shows them all", name=name_or_id
    )


def _number(text: str) -> int:
    """What can be a template's number; -1 is never used."""
    return int(text) if text.isdecimal() and len(text) <= _LONGEST_NUMBER else -1


def list_templates(connection: Connection) -> list[Template]:
    """All templates, in the order in which they run."""
    column = pipeline_templates.c
    query = select(pipeline_templates).order_by(column.place, column.id)
    return [_template(row) for row in connection.execute(query)]


def _refuse_name_of_another(connection: Connection, name: str, template_id: int | None) -> None:
    taken = connection.execute(
        select(pipeline_templates.c.id).where(pipeline_templates.c.name == name)
    ).scalar()
    if taken is not None and taken != template_id:
        raise ConflictError(
            "template {id} has the name {name} already",
            hint="change it with `headwater pipeline edit`",
            id=taken,
            name=name,
        )


def _refuse_missing_outlets(connection: Connection, template: NewTemplate) -> None:
    named = [name for name in template.outlets if name != DEFAULT_OUTLET]
    for missing in outlets_missing(connection, named):
        raise InputError(
            "a step publishes to the outlet {name}, but there is none",
            hint="add it first: headwater outlet add {name} --by-pipelines",
            name=missing,
        )


def _add_default_outlet(connection: Connection, template: NewTemplate, now: float) -> None:
    if DEFAULT_OUTLET in template.outlets and outlets_missing(connection, [DEFAULT_OUTLET]):
        shown = Selection(outlet=DEFAULT_OUTLET)
        add_outlet(connection, Outlet(DEFAULT_OUTLET, "Headwater", shown), now)


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
