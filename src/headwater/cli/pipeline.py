"""`headwater pipeline …`: what is done with new items."""

import time
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import orjson
import typer

from headwater.cli.choosing import find_ids
from headwater.cli.files import read_text
from headwater.cli.output import Json, print_json, print_table, say
from headwater.cli.session import Session
from headwater.errors import InputError
from headwater.language import translate as t
from headwater.wording import NOTHING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from sqlalchemy import Connection

    from headwater.store.pipelines.attaching import Attachment, Scope
    from headwater.store.pipelines.templates import NewTemplate, Template

app = typer.Typer(
    no_args_is_help=True, help=t("Add, list, change and remove pipeline templates; attach them to sources.")
)

Name = Annotated[str, typer.Argument(metavar="TEMPLATE", help=t("The template's name or number, as listed."))]
File = Annotated[
    str, typer.Argument(metavar="FILE", help=t("A JSON or TOML file, or - for the standard input."))
]
OwnName = Annotated[
    str | None, typer.Option("--name", help=t("A name for it; else its own, and else the file's."))
]
SourceNames = Annotated[
    list[str] | None,
    typer.Argument(metavar="SOURCE...", help=t("The sources' numbers, names or addresses.")),
]
FolderNames = Annotated[
    list[str] | None, typer.Option("--folder", help=t("All sources in this folder; may be repeated."))
]
TypeNames = Annotated[
    list[str] | None, typer.Option("--type", help=t("All sources of this type; may be repeated."))
]
TagNames = Annotated[
    list[str] | None,
    typer.Option("--tag", help=t("Items with this tag, of their publisher or a pipeline; may be repeated.")),
]
Everything = Annotated[
    bool, typer.Option("--everything", help=t("All sources, those that are added later too."))
]
SHOWN_ATTACHMENTS = 5


@app.command("list", help=t("List all templates."))
def list_(context: typer.Context, json: Json = False) -> None:
    from headwater.store.pipelines.attaching import attachments_of, name_attachments
    from headwater.store.pipelines.templates import list_templates

    session: Session = context.obj
    with session.open_store() as store, store.reading() as connection:
        found = [(each, attachments_of(connection, each.id)) for each in list_templates(connection)]
        names = name_attachments(connection, [each for _, its in found for each in its])
    if json:
        print_json([_shown(template, its) for template, its in found])
        return
    print_table(
        (t("Order"), "ID", t("Name"), t("Steps"), t("Attached to"), t("Runs on change")),
        (
            (
                number,
                template.id,
                template.name,
                " → ".join(step["step_type"] for step in template.steps),
                _tell_attachments(its, names),
                t("yes") if template.run_on_change else t("no"),
            )
            for number, (template, its) in enumerate(found, start=1)
        ),
        empty=t("There are no templates yet. Add one with: headwater pipeline add FILE"),
    )


@app.command(help=t("Show one template with its steps."))
def show(context: typer.Context, name: Name, json: Json = False) -> None:
    from headwater.store.pipelines.attaching import attachments_of, name_attachments
    from headwater.store.pipelines.templates import find_template

    session: Session = context.obj
    with session.open_store() as store, store.reading() as connection:
        template = find_template(connection, name)
        attached = attachments_of(connection, template.id)
        names = name_attachments(connection, attached)
    shown = _shown(template, attached)
    if json:
        print_json(shown)
        return
    say(f"{template.id} {template.name}" + (f": {template.description}" if template.description else ""))
    say(t("attached to {what}").format(what=_tell_attachments(attached, names) or NOTHING))
    print_table(
        ("", t("Step"), t("Critical"), t("Timeout"), t("Retries"), t("Config")),
        (
            (
                number,
                step["step_type"],
                t("yes") if step["is_critical"] else t("no"),
                step["timeout_seconds"],
                step["retries"],
                orjson.dumps(step["config"]).decode(),
            )
            for number, step in enumerate(shown["steps"], start=1)
        ),
        empty="",
    )


@app.command(help=t("Add a template from a JSON or TOML file."))
def add(context: typer.Context, file: File, own_name: OwnName = None, json: Json = False) -> None:
    from headwater.store.pipelines.templates import add_template

    session: Session = context.obj
    template = _read_template(_read_data(session, file), file, own_name)
    with session.open_store() as store, store.writing() as connection:
        added = add_template(connection, template, time.time())
    _tell(added, (), t("added template {id}: {name}"), json)


@app.command(
    help=t("Replace a template with the contents of a file. Runs that have started keep their steps.")
)
def edit(context: typer.Context, name: Name, file: File, json: Json = False) -> None:
    from headwater.store.pipelines.attaching import attachments_of
    from headwater.store.pipelines.templates import change_template, find_template

    session: Session = context.obj
    data = _read_data(session, file)
    with session.open_store() as store, store.writing() as connection:
        before = find_template(connection, name)
        template = _read_template(data, file, usual_name=before.name)
        changed = change_template(connection, before.id, template, time.time())
        attached = attachments_of(connection, changed.id)
    _tell(changed, attached, t("changed template {id}: {name}"), json)


@app.command(help=t("Remove a template with all its attachments. Its runs stay."))
def remove(context: typer.Context, name: Name, json: Json = False) -> None:
    from headwater.store.pipelines.attaching import remove_template
    from headwater.store.pipelines.templates import find_template

    session: Session = context.obj
    with session.open_store() as store, store.writing() as connection:
        removed = remove_template(connection, find_template(connection, name).id)
    _tell(removed, (), t("removed template {id}: {name}"), json)


@app.command(help=t("Show the requests to language models and their cost, day by day."))
def usage(
    context: typer.Context,
    days: Annotated[int, typer.Option(min=1, max=366, help=t("The number of days, including today."))] = 30,
    json: Json = False,
) -> None:
    from headwater.store.pipelines.models import name_owners, read_usage
    from headwater.views.models import usage_json

    session: Session = context.obj
    with session.open_store() as store, store.reading() as connection:
        found = read_usage(connection, time.time() - (days - 1) * 86_400)
        names = name_owners(connection, found)
    if json:
        print_json([usage_json(each, owner_name=names[each.owner]) for each in found])
        return
    print_table(
        (t("Day"), t("Used by"), t("Model"), t("Requests"), t("From the cache"), t("Tokens"), t("Cost")),
        (
            (
                each.day,
                names[each.owner],
                each.model,
                each.requests,
                each.cached,
                each.input_tokens + each.output_tokens,
                f"{each.cost:.4g}" if each.cost else NOTHING,
            )
            for each in found
        ),
        empty=t("No requests to models yet."),
    )


@app.command(help=t("Check a template file; stores nothing."))
def validate(
    context: typer.Context,
    file: File,
    own_name: OwnName = None,
    edited: Annotated[
        str | None,
        typer.Option(
            "--edit", metavar="TEMPLATE", help=t("Check it as a change of this template, not as a new one.")
        ),
    ] = None,
    json: Json = False,
) -> None:
    from headwater.store.pipelines.templates import check_template, find_template

    session: Session = context.obj
    data = _read_data(session, file)
    with session.open_store() as store, store.reading() as connection:
        before = None if edited is None else find_template(connection, edited)
        template = _read_template(data, file, own_name, before.name if before else None)
        check_template(connection, template, before.id if before else None)
    if json:
        print_json({"name": template.name, "steps": len(template.steps), "valid": True})
    else:
        say(
            t("{name} is valid: {count} {count:step|steps}").format(
                name=template.name, count=len(template.steps)
            )
        )


@app.command(help=t("Run a template for every new item of sources, folders, types, tags or everything."))
def attach(
    context: typer.Context,
    name: Name,
    sources: SourceNames = None,
    folder: FolderNames = None,
    type_name: TypeNames = None,
    tag: TagNames = None,
    everything: Everything = False,
    json: Json = False,
) -> None:
    from headwater.store.pipelines.attaching import attach as attach_to
    from headwater.store.pipelines.templates import find_template

    session: Session = context.obj
    now = time.time()
    with session.open_store() as store, store.writing() as connection:
        template = find_template(connection, name)
        for scope, values in _targets(connection, sources, folder, type_name, tag, everything).items():
            attach_to(connection, template.id, scope, values, now)
    _show_attachments(session, template, json)


@app.command(help=t("Detach a template from sources, folders, types or tags. It stays attached elsewhere."))
def detach(
    context: typer.Context,
    name: Name,
    sources: SourceNames = None,
    folder: FolderNames = None,
    type_name: TypeNames = None,
    tag: TagNames = None,
    everything: Everything = False,
    json: Json = False,
) -> None:
    from headwater.store.pipelines.attaching import detach as detach_from
    from headwater.store.pipelines.templates import find_template

    session: Session = context.obj
    with session.open_store() as store, store.writing() as connection:
        template = find_template(connection, name)
        wanted = _targets(connection, sources, folder, type_name, tag, everything, removed=True)
        count = sum(detach_from(connection, template.id, scope, values) for scope, values in wanted.items())
        if not count:
            raise InputError("{name} is not attached to that", name=template.name)
    _show_attachments(session, template, json)


@app.command(help=t("Set the order in which templates run for an item; others come after those named."))
def order(
    context: typer.Context,
    names: Annotated[
        list[str], typer.Argument(metavar="TEMPLATE...", help=t("Names or numbers, first to last."))
    ],
    json: Json = False,
) -> None:
    from headwater.store.pipelines.attaching import order_templates
    from headwater.store.pipelines.templates import find_template

    session: Session = context.obj
    with session.open_store() as store, store.writing() as connection:
        ordered = order_templates(connection, [find_template(connection, name).id for name in names])
    if json:
        print_json([{"id": template.id, "name": template.name} for template in ordered])
    else:
        say(" → ".join(template.name for template in ordered))


def _targets(
    connection: "Connection",
    sources: list[str] | None,
    folder: list[str] | None,
    type_name: list[str] | None,
    tag: list[str] | None,
    everything: bool,
    *,
    removed: bool = False,
) -> "dict[Scope, list[str | int]]":
    """What to attach to or detach from, by scope; InputError when nothing is named."""
    from headwater.collectors.types import find_type

    found: dict[Scope, list[str | int]] = {
        "source": list(find_ids(connection, sources or (), removed=removed)),
        "folder": list(folder or ()),
        "type": [find_type(each).name for each in type_name or ()],
        "tag": list(tag or ()),
        "everything": [""] if everything else [],
    }
    wanted = {scope: values for scope, values in found.items() if values}
    if not wanted:
        raise InputError("name sources, or use --folder, --type, --tag or --everything")
    return wanted


def _show_attachments(session: Session, template: "Template", json: bool) -> None:
    from headwater.store.pipelines.attaching import attachments_of, name_attachments

    with session.open_store() as store, store.reading() as connection:
        attached = attachments_of(connection, template.id)
        names = name_attachments(connection, attached)
    if json:
        print_json(_shown(template, attached))
    elif attached:
        say(
            t("{name} runs for new items of: {what}").format(
                name=template.name, what=_tell_attachments(attached, names)
            )
        )
    else:
        say(t("{name} is attached to nothing now").format(name=template.name))


def _tell_attachments(attached: "Sequence[Attachment]", names: "Mapping[Attachment, str]") -> str:
    """In words, such as `everything, folder News, source Example`; of many the first few."""
    told = [
        t("everything") if each.scope == "everything" else f"{t(each.scope)} {names[each]}"
        for each in attached
    ]
    more = len(told) - SHOWN_ATTACHMENTS
    return ", ".join(told[:SHOWN_ATTACHMENTS]) + (f", … (+{more})" if more > 0 else "")


def _read_data(session: Session, file: str) -> Any:
    session.settings  # noqa: B018 - from here on, messages are in the user's language
    return _parse(read_text(file), file)


def _read_template(
    data: Any, file: str, own_name: str | None = None, usual_name: str | None = None
) -> "NewTemplate":
    """The template in a file. Its name: the one given, its own, the usual one, the file's."""
    from headwater.pipeline.templates import read_template

    if own_name is not None and isinstance(data, dict):
        data["name"] = own_name
    return read_template(data, own_name or usual_name or (None if file == "-" else Path(file).stem))


def _parse(text: str, file: str) -> Any:
    try:
        if file.endswith(".toml") or (file == "-" and not text.lstrip().startswith(("{", "["))):
            return tomllib.loads(text)
        return orjson.loads(text)
    except (tomllib.TOMLDecodeError, orjson.JSONDecodeError) as error:
        raise InputError("cannot read {path}: {problem}", path=file, problem=error) from None


def _tell(template: "Template", attached: "Sequence[Attachment]", message: str, json: bool) -> None:
    if json:
        print_json(_shown(template, attached))
    else:
        say(message.format(id=template.id, name=template.name))


def _shown(template: "Template", attached: "Sequence[Attachment]") -> dict[str, Any]:
    from headwater.pipeline.templates import shown_steps
    from headwater.views.templates import template_json

    return template_json(template, shown_steps(template), attached)
