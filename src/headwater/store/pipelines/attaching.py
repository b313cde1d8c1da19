"""Which templates run for whose new items: attached to a source, a folder, a type, a tag or everything.

Several templates may be attached to the same items; they run one after the other, in the order of the templates.
Attaching one never detaches another. A source that is added later is covered by its folder, its type and everything.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from sqlalchemy import Connection, delete, select, update

from headwater.errors import InputError
from headwater.model import Source, fold_tag
from headwater.store.core.bulk import insert_rows, run_by, select_by, storable
from headwater.store.core.tables import pipeline_attachments, pipeline_templates, sources
from headwater.store.pipelines.templates import Template, get_template, list_templates

Scope = Literal["everything", "type", "folder", "tag", "source"]
SCOPES: tuple[Scope, ...] = get_args(Scope)
LISTED = 1_000  # attachments of a template that are shown


@dataclass(frozen=True, slots=True)
class Attachment:
    """What a template is attached to. `value` is a type's, folder's or tag's name, or a source's number."""

    template_id: int
    scope: Scope
    value: str = ""


@dataclass(frozen=True, slots=True)
class AttachedTemplate:
    """A template that runs for a source's new items, and by what."""

    template: Template
    by: tuple[Attachment, ...]


def attach(
    connection: Connection, template_id: int, scope: Scope, values: Iterable[str | int], now: float
) -> None:
    """New items of these start a run of the template from now on, besides those they start already."""
    get_template(connection, template_id)
    read = _read_values(scope, values)
    insert_rows(
        connection,
        pipeline_attachments,
        ("template_id", "scope", "value", "created_at"),
        [(template_id, scope, value, now) for value in read],
        "ON CONFLICT (template_id, scope, value) DO NOTHING",
    )
    if scope == "source":
        _note_first(connection, read)


def detach(connection: Connection, template_id: int | None, scope: Scope, values: Iterable[str | int]) -> int:
    """New items of these no longer start the template (None: any) by this attachment. Returns how many there were."""
    read = _read_values(scope, values)
    column = pipeline_attachments.c
    query = delete(pipeline_attachments).where(column.scope == scope, column.value.in_(read))
    if template_id is not None:
        query = query.where(column.template_id == template_id)
    count = connection.execute(query).rowcount
    if scope == "source":
        _note_first(connection, read)
    return count


def detach_all(connection: Connection, source_ids: Iterable[int]) -> None:
    """Detach every template from these sources; those of their folder, type or everything still run."""
    detach(connection, None, "source", source_ids)


def remove_template(connection: Connection, template_id: int) -> Template:
    """Remove a template with all its attachments. Its runs stay, and those under way go on."""
    removed = get_template(connection, template_id)
    attached = connection.execute(
        select(sources.c.id).where(sources.c.pipeline_template_id == template_id)
    ).scalars()
    source_ids = [str(source_id) for source_id in attached]
    connection.execute(delete(pipeline_templates).where(pipeline_templates.c.id == template_id))
    _note_first(connection, source_ids)
    return removed


def _read_values(scope: Scope, values: Iterable[str | int]) -> list[str]:
    if scope not in SCOPES:
        raise InputError(
            "a pipeline cannot be attached to a {scope}; to {known}", scope=scope, known=", ".join(SCOPES)
        )
    if scope == "everything":
        return [""]
    fold = fold_tag if scope == "tag" else str.strip
    read = list(dict.fromkeys(fold(storable(str(value)) or "") for value in values))
    if "" in read:
        raise InputError("the {scope} to attach it to has no name", scope=scope)
    return read


def _note_first(connection: Connection, source_ids: Sequence[str]) -> None:
    """Let the sources' rows say which template is the first that is attached to them."""
    first: dict[str, int] = {}
    for value, template_id in select_by(
        connection,
        "SELECT a.value, a.template_id FROM pipeline_attachments a JOIN pipeline_templates t ON t.id = a.template_id"
        " WHERE a.scope = 'source' AND a.value {values} ORDER BY t.place, t.id",
        source_ids,
        "text",
    ):
        first.setdefault(value, template_id)
    for template_id in sorted(set(first.values())):
        its = [int(value) for value, each in first.items() if each == template_id]
        run_by(
            connection,
            "UPDATE sources SET pipeline_template_id = ? WHERE id {values}",
            its,
            "bigint",
            template_id,
        )
    none = [int(value) for value in source_ids if value not in first and value.isdecimal()]
    run_by(connection, "UPDATE sources SET pipeline_template_id = NULL WHERE id {values}", none, "bigint")


def attachments_of(connection: Connection, template_id: int, *, limit: int = LISTED) -> list[Attachment]:
    """What a template is attached to, in the order of attaching."""
    column = pipeline_attachments.c
    query = select(column.template_id, column.scope, column.value).where(column.template_id == template_id)
    return [Attachment(*row) for row in connection.execute(query.order_by(column.id).limit(limit))]


def name_attachments(connection: Connection, attachments: Sequence[Attachment]) -> dict[Attachment, str]:
    """A name for people of what each is attached to: a source's own, else its value."""
    ids = [int(each.value) for each in attachments if each.scope == "source" and each.value.isdecimal()]
    rows = select_by(connection, "SELECT id, name FROM sources WHERE id {values}", ids, "bigint")
    names = {str(source_id): name for source_id, name in rows}
    return {
        each: names.get(each.value, each.value) if each.scope == "source" else each.value
        for each in attachments
    }


def templates_for(connection: Connection, source: Source) -> list[AttachedTemplate]:
    """The templates that a source's new items start, in the order in which they run.

    Those that are attached to a tag run for the items with that tag only.
    """
    attached: dict[int, list[Attachment]] = {}
    for each in Attachments.of_sources(connection, [source.id]).matching(
        source.id, source.type, source.folder
    ):
        attached.setdefault(each.template_id, []).append(each)
    return [
        AttachedTemplate(template, tuple(attached[template.id]))
        for template in list_templates(connection)
        if template.id in attached
    ]


@dataclass(frozen=True, slots=True)
class Attachments:
    """The attachments that may concern some sources."""

    general: tuple[Attachment, ...]  # to folders, types, tags and everything: they are few
    by_source: Mapping[str, tuple[Attachment, ...]]

    @classmethod
    def of_sources(cls, connection: Connection, source_ids: Iterable[int]) -> "Attachments":
        general = connection.exec_driver_sql(
            "SELECT template_id, scope, value FROM pipeline_attachments"
            " WHERE scope IN ('everything', 'folder', 'tag', 'type') ORDER BY id"
        ).all()
        by_source: dict[str, tuple[Attachment, ...]] = {}
        for row in select_by(
            connection,
            "SELECT template_id, scope, value FROM pipeline_attachments WHERE scope = 'source' AND value {values}"
            " ORDER BY id",
            map(str, source_ids),
            "text",
        ):
            each = Attachment(*row)
            by_source[each.value] = (*by_source.get(each.value, ()), each)
        return cls(tuple(Attachment(*row) for row in general), by_source)

    def matching(self, source_id: int, type_: str, folder: str | None) -> list[Attachment]:
        """Those that concern a source, or some of its items by their tags."""
        values = {"everything": "", "type": type_, "folder": folder}
        general = [each for each in self.general if each.scope == "tag" or values[each.scope] == each.value]
        return [*self.by_source.get(str(source_id), ()), *general]


def order_templates(connection: Connection, template_ids: Sequence[int]) -> list[Template]:
    """Have the templates run in this order; those that are not named come after them, as they were."""
    known = [template.id for template in list_templates(connection)]
    for template_id in template_ids:
        get_template(connection, template_id)
    order = list(dict.fromkeys([*template_ids, *known]))
    for place, template_id in enumerate(order, start=1):
        query = update(pipeline_templates).where(pipeline_templates.c.id == template_id)
        connection.execute(query.values(place=place))
    several = connection.exec_driver_sql(
        "SELECT value FROM pipeline_attachments WHERE scope = 'source' GROUP BY value HAVING count(*) > 1"
    ).scalars()
    _note_first(connection, list(several))
    return list_templates(connection)
