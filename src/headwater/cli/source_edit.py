"""`headwater source edit`, `pause`, `resume`, `remove`, `restore`: one source or many at once."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from headwater.cli.choosing import InFolder, InState, ManySources, Matching, OfType, choose_ids, read_filter
from headwater.cli.loop import run
from headwater.cli.output import Json, print_json, say
from headwater.cli.session import Session
from headwater.cli.source import Assignments, app, read_assignments, sources_as_json, whole_source_as_json
from headwater.errors import InputError
from headwater.language import translate as t

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from headwater.sources.editing import Acted, Edit, SourceAction
    from headwater.store.core.database import Store

Interval = Annotated[
    float | None, typer.Option(min=0, help=t("Minutes between visits; 0 goes back to the default."))
]
Policy = Annotated[
    str | None, typer.Option(help=t("How its visits are planned: adaptive, cadence or interval."))
]
NewFolder = Annotated[str | None, typer.Option(help=t("A folder to make and to put it in."))]


@app.command(help=t("Change one source or many. What is not given stays as it is; an empty text clears it."))
def edit(
    context: typer.Context,
    sources: ManySources = None,
    name: Annotated[str | None, typer.Option(help=t("A new name."))] = None,
    url: Annotated[
        str | None,
        typer.Option(help=t("A new address. It is visited first; if that fails, nothing is changed.")),
    ] = None,
    folder: Annotated[str | None, typer.Option(help=t("A folder that other sources are in."))] = None,
    new_folder: NewFolder = None,
    interval: Interval = None,
    policy: Policy = None,
    pipeline: Annotated[
        str | None,
        typer.Option(help=t("A pipeline to attach besides others, by name or number; empty: detach all.")),
    ] = None,
    config: Assignments = None,
    unset: Annotated[
        list[str] | None, typer.Option(help=t("A key to take out of its config; may be repeated."))
    ] = None,
    check: Annotated[
        bool, typer.Option(help=t("Visit a new address first; --no-check takes it as it is."))
    ] = True,
    in_folder: Annotated[str | None, typer.Option(help=t("All sources in this folder."))] = None,
    of_type: Annotated[str | None, typer.Option(help=t("All sources of this type."))] = None,
    in_state: Annotated[str | None, typer.Option(help=t("All sources in this state."))] = None,
    search: Matching = None,
    json: Json = False,
) -> None:
    from headwater.collect.context import read_planner
    from headwater.sources.editing import Edit, edit_source, edit_sources
    from headwater.store.core.clock import database_time

    session: Session = context.obj
    if folder is not None and new_folder is not None:
        raise InputError("--folder names a folder that is there, --new-folder one to make; give one of them")
    changes = Edit(
        name=name,
        url=url,
        folder=folder if new_folder is None else new_folder,
        new_folder=new_folder is not None,
        policy=policy,
        interval_minutes=interval,
    )
    with session.open_store() as store:
        with store.reading() as connection:
            wanted = read_filter(connection, search, of_type, in_folder, in_state)
            ids = choose_ids(connection, sources, wanted, database_time(connection))
            changes = _with_found(connection, changes, ids, pipeline, config or [], unset or [])
        if changes == Edit():
            raise InputError(
                "say what to change: --name, --url, --folder, --interval, --policy, --pipeline or --config"
            )
        if len(ids) != 1:
            with store.writing() as connection:
                acted = edit_sources(connection, ids, changes, database_time(connection))
        elif url is not None and check:
            run(_edit_checked(session, store, ids[0], changes))
            acted = _all_done(ids)
        else:
            planner = run(read_planner(store, session.settings))
            with store.writing() as connection:
                edit_source(connection, ids[0], changes, database_time(connection), planner)
            acted = _all_done(ids)
        _tell(
            session,
            store,
            acted,
            t("changed source {id}: {name}"),
            t("changed {count} {count:source|sources}"),
            json,
        )


@app.command(help=t("Stop visiting sources until they are resumed."))
def pause(
    context: typer.Context,
    sources: ManySources = None,
    folder: InFolder = None,
    type_name: OfType = None,
    state: InState = None,
    search: Matching = None,
    json: Json = False,
) -> None:
    chosen = (search, type_name, folder, state)
    _act(
        context.obj,
        "pause",
        sources,
        chosen,
        t("paused source {id}: {name}"),
        t("paused {count} {count:source|sources}"),
        json,
    )


@app.command(help=t("Visit paused sources again."))
def resume(
    context: typer.Context,
    sources: ManySources = None,
    folder: InFolder = None,
    type_name: OfType = None,
    state: InState = None,
    search: Matching = None,
    json: Json = False,
) -> None:
    chosen = (search, type_name, folder, state)
    _act(
        context.obj,
        "resume",
        sources,
        chosen,
        t("resumed source {id}: {name}"),
        t("resumed {count} {count:source|sources}"),
        json,
    )


@app.command(help=t("Remove sources. Their items stay, and `restore` brings them back."))
def remove(
    context: typer.Context,
    sources: ManySources = None,
    folder: InFolder = None,
    type_name: OfType = None,
    state: InState = None,
    search: Matching = None,
    json: Json = False,
) -> None:
    chosen = (search, type_name, folder, state)
    _act(
        context.obj,
        "remove",
        sources,
        chosen,
        t("removed source {id}: {name}"),
        t("removed {count} {count:source|sources}"),
        json,
    )


@app.command(help=t("Bring removed sources back, with all that they have seen."))
def restore(context: typer.Context, sources: ManySources = None, json: Json = False) -> None:
    chosen = (None, None, None, None)
    one, many = t("brought back source {id}: {name}"), t("brought back {count} {count:source|sources}")
    _act(context.obj, "restore", sources, chosen, one, many, json)


def _act(
    session: Session,
    action: "SourceAction",
    names: list[str] | None,
    chosen: tuple[str | None, str | None, str | None, str | None],
    one: str,
    many: str,
    json: bool,
) -> None:
    from headwater.sources.editing import act_on_sources
    from headwater.store.core.clock import database_time

    with session.open_store() as store:
        with store.writing() as connection:
            now = database_time(connection)
            wanted = read_filter(connection, *chosen)
            ids = choose_ids(connection, names, wanted, now, removed=action == "restore")
            acted = act_on_sources(connection, action, ids, now)
        _tell(session, store, acted, one, many, json)


def _tell(session: Session, store: "Store", acted: "Acted", one: str, many: str, json: bool) -> None:
    """Say what was done, and with which sources it could not be."""
    from headwater.store.collecting.sources import get_source_or_removed

    if len(acted.problems) == 1 and not acted.done:
        raise acted.problems[0][1]
    with store.reading() as connection:
        if json:
            done = [get_source_or_removed(connection, each) for each in acted.done]
            one_only = len(done) == 1
            print_json(
                whole_source_as_json(session, connection, done[0])
                if one_only
                else list(sources_as_json(session, connection, done))
            )
        elif len(acted.done) == 1:
            source = get_source_or_removed(connection, acted.done[0])
            say(one.format(id=source.id, name=source.name))
        else:
            say(many.format(count=len(acted.done)))
    for source_id, problem in acted.problems:
        say(f"{source_id}: {problem.render_with_hint()}", error=True)
    if acted.problems:
        raise typer.Exit(1)


def _all_done(ids: list[int]) -> "Acted":
    from headwater.sources.editing import Acted

    return Acted(tuple(ids), ())


async def _edit_checked(session: Session, store: "Store", source_id: int, changes: "Edit") -> None:
    from headwater.collect.context import read_visit_context
    from headwater.fetch.client import make_fetcher
    from headwater.sources.editing import edit_checked

    async with make_fetcher(session.settings) as fetcher:
        await edit_checked(source_id, changes, await read_visit_context(store, session.settings, fetcher))


def _with_found(
    connection: "Connection",
    changes: "Edit",
    ids: list[int],
    pipeline: str | None,
    assignments: list[str],
    unset: list[str],
) -> "Edit":
    """The changes with what had to be looked up: the pipeline by its name, the config of the one source."""
    from dataclasses import replace

    from headwater.store.collecting.sources import get_source
    from headwater.store.pipelines.templates import find_template

    found: dict[str, Any] = {}
    if pipeline is not None:
        found["template_id"] = find_template(connection, pipeline).id if pipeline else 0
    if assignments or unset:
        if len(ids) != 1:
            raise InputError("a name, an address or a config is for one source; many take the rest")
        source = get_source(connection, ids[0])
        config = {**source.config, **read_assignments(assignments, source.url, source.type)}
        found["config"] = {key: value for key, value in config.items() if key not in unset}
    return replace(changes, **found)
