"""`headwater pipeline …`: what is done with new items."""

import time
import tomllib
from typing import TYPE_CHECKING, Annotated, Any

import orjson
import typer

from headwater.cli.files import read_text
from headwater.cli.output import BIGGEST, Json, iso, print_json, print_table, say
from headwater.cli.session import Session
from headwater.errors import InputError
from headwater.language import translate as t

if TYPE_CHECKING:
    from headwater.store.templates import NewTemplate, Template

app = typer.Typer(
    no_args_is_help=True, help=t("Add, list, change and remove pipeline templates; attach them to sources.")
)

Name = Annotated[str, typer.Argument(metavar="TEMPLATE", help=t("The template's name or number, as listed."))]
File = Annotated[
    str, typer.Argument(metavar="FILE", help=t("A JSON or TOML file, or - for the standard input."))
]
SourceIds = Annotated[
    list[int], typer.Argument(metavar="SOURCE…", max=BIGGEST, help=t("The sources' numbers, as listed."))
]


@app.command("list", help=t("List all templates."))
def list_(context: typer.Context, json: Json = False) -> None:
    from headwater.store.templates import list_templates, sources_by_template

    session: Session = context.obj
    with session.open_store() as store, store.reading() as connection:
        found = list_templates(connection)
        attached = sources_by_template(connection)
    if json:
        print_json([template_as_json(template) for template in found])
        return
    print_table(
        ("ID", t("Name"), t("Steps"), t("Sources"), t("Runs on change")),
        (
            (
                template.id,
                template.name,
                " → ".join(step["step_type"] for step in template.steps),
                attached.get(template.id, 0),
                t("yes") if template.run_on_change else t("no"),
            )
            for template in found
        ),
        empty=t("There are no templates yet. Add one with: headwater pipeline add FILE"),
    )


@app.command(help=t("Show one template with its steps."))
def show(context: typer.Context, name: Name, json: Json = False) -> None:
    from headwater.store.templates import find_template

    session: Session = context.obj
    with session.open_store() as store, store.reading() as connection:
        template = find_template(connection, name)
    shown = template_as_json(template)
    if json:
        print_json(shown)
        return
    say(f"{template.id} {template.name}" + (f": {template.description}" if template.description else ""))
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
def add(context: typer.Context, file: File, json: Json = False) -> None:
    from headwater.store.templates import add_template

    session: Session = context.obj
    template = _read_template(session, file)
    with session.open_store() as store, store.writing() as connection:
        added = add_template(connection, template, time.time())
    _tell(added, t("added template {id}: {name}"), json)


@app.command(help=t("Replace a template by what a file says. Runs that have begun keep their steps."))
def edit(context: typer.Context, name: Name, file: File, json: Json = False) -> None:
    from headwater.store.templates import change_template, find_template

    session: Session = context.obj
    template = _read_template(session, file)
    with session.open_store() as store, store.writing() as connection:
        before = find_template(connection, name)
        changed = change_template(connection, before.id, template, time.time())
    _tell(changed, t("changed template {id}: {name}"), json)


@app.command(help=t("Remove a template, from its sources too. Its runs stay."))
def remove(context: typer.Context, name: Name, json: Json = False) -> None:
    from headwater.store.templates import find_template, remove_template

    session: Session = context.obj
    with session.open_store() as store, store.writing() as connection:
        removed = remove_template(connection, find_template(connection, name).id)
    _tell(removed, t("removed template {id}: {name}"), json)


@app.command(help=t("Check a template file; stores nothing."))
def validate(context: typer.Context, file: File, json: Json = False) -> None:
    session: Session = context.obj
    template = _read_template(session, file)
    if json:
        print_json({"name": template.name, "steps": len(template.steps), "valid": True})
    else:
        say(
            t("{name} is good: {count} {count:step|steps}").format(
                name=template.name, count=len(template.steps)
            )
        )


@app.command(help=t("Run a template for every new item of these sources."))
def attach(context: typer.Context, name: Name, source_ids: SourceIds, json: Json = False) -> None:
    _attach(context.obj, name, source_ids, json)


@app.command(help=t("Run no template for the new items of these sources any more."))
def detach(context: typer.Context, source_ids: SourceIds, json: Json = False) -> None:
    _attach(context.obj, None, source_ids, json)


def _attach(session: Session, name: str | None, source_ids: list[int], json: bool) -> None:
    from headwater.store.sources import get_source
    from headwater.store.templates import attach_template, find_template

    with session.open_store() as store, store.writing() as connection:
        template = None if name is None else find_template(connection, name)
        for source_id in source_ids:
            get_source(connection, source_id)
        attach_template(connection, source_ids, None if template is None else template.id)
    if json:
        print_json({"template_id": None if template is None else template.id, "source_ids": source_ids})
    elif template is None:
        say(t("{count} {count:source has|sources have} no template now").format(count=len(source_ids)))
    else:
        say(
            t("new items of {count} {count:source|sources} start template {id}: {name}").format(
                count=len(source_ids), id=template.id, name=template.name
            )
        )


def _read_template(session: Session, file: str) -> "NewTemplate":
    from headwater.pipeline.templates import read_template

    session.settings  # noqa: B018 - from here on, messages are in the user's language
    return read_template(_parse(read_text(file), file))


def _parse(text: str, file: str) -> Any:
    try:
        if file.endswith(".toml") or (file == "-" and not text.lstrip().startswith(("{", "["))):
            return tomllib.loads(text)
        return orjson.loads(text)
    except (tomllib.TOMLDecodeError, orjson.JSONDecodeError) as error:
        raise InputError("cannot read {path}: {problem}", path=file, problem=error) from None


def _tell(template: "Template", message: str, json: bool) -> None:
    if json:
        print_json(template_as_json(template))
    else:
        say(message.format(id=template.id, name=template.name))


def template_as_json(template: "Template") -> dict[str, Any]:
    """A template as programs read it. Secrets in its steps' configs are starred out."""
    from headwater.pipeline.templates import shown_steps

    return {
        "id": template.id,
        "name": template.name,
        "description": template.description,
        "run_on_change": template.run_on_change,
        "steps": shown_steps(template),
        "created_at": iso(template.created_at),
        "updated_at": iso(template.updated_at),
    }
