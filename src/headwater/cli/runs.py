"""`headwater runs …`: what pipelines have done, are doing, and are to do again."""

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any, Literal

import orjson
import typer

from headwater.cli.choosing import OfSource
from headwater.cli.files import read_text
from headwater.cli.output import BIGGEST, Json, from_now, print_json, print_table, progress_bar, say
from headwater.cli.selection import Folders, Search, Sources, Types, read_selection
from headwater.cli.session import Session
from headwater.errors import InputError
from headwater.language import translate as t
from headwater.wording import tell_run, tell_step

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from headwater.store.core.database import Store
    from headwater.store.pipelines.starting import RunQuery

app = typer.Typer(no_args_is_help=True, help=t("List, start, repeat, retry and cancel pipeline runs."))

BATCH = 200

Id = Annotated[int, typer.Argument(metavar="RUN", max=BIGGEST, help=t("The run's number, as listed."))]
Ids = Annotated[
    list[int] | None,
    typer.Argument(metavar="RUN…", max=BIGGEST, help=t("The runs' numbers, as listed.")),
]
State = Annotated[
    Literal["pending", "running", "completed", "failed", "skipped"] | None,
    typer.Option("--status", help=t("Only those in this state.")),
]
OfTemplate = Annotated[
    str | None, typer.Option("--template", metavar="TEMPLATE", help=t("Only this template's."))
]
Hours = Annotated[
    float | None, typer.Option("--hours", min=0, help=t("Only those created in the last so many hours."))
]
Failed = Annotated[bool, typer.Option("--failed", help=t("Only failed runs (dead letters)."))]


@app.command("list", help=t("List runs, newest first."))
def list_(
    context: typer.Context,
    status: State = None,
    failed: Failed = False,
    template: OfTemplate = None,
    source: OfSource = None,
    hours: Hours = None,
    limit: Annotated[int, typer.Option(min=1, max=BIGGEST, help=t("How many, newest first."))] = 50,
    json: Json = False,
) -> None:
    from headwater.store.pipelines.starting import list_runs
    from headwater.views.runs import run_json

    session: Session = context.obj
    with session.open_store() as store, store.reading() as connection:
        wanted = _query(connection, None, "failed" if failed else status, template, source, hours)
        found = list_runs(connection, wanted, limit=limit)
    if json:
        print_json([run_json(run) for run in found])
        return
    print_table(
        ("ID", t("State"), t("Template"), t("Item"), t("Step"), t("Created"), t("Error")),
        (
            (
                run.id,
                tell_run(run.status, run.error_message),
                run.template_name,
                run.item_title,
                run.current_step_index + 1,
                from_now(run.created_at),
                run.error_message,
            )
            for run in found
        ),
        empty=t("There are no such runs."),
    )


@app.command(help=t("Show one run with its steps, their outputs and errors."))
def show(context: typer.Context, run_id: Id, json: Json = False) -> None:
    from headwater.store.pipelines.starting import get_run
    from headwater.views.runs import whole_run_json

    session: Session = context.obj
    with session.open_store() as store, store.reading() as connection:
        run = get_run(connection, run_id)
    if json:
        print_json(whole_run_json(run))
        return
    say(f"{run.id} {tell_run(run.status, run.error_message)}: {run.template_name or ''} · {run.item_title}")
    if run.error_message:
        say(run.error_message)
    print_table(
        ("", t("Step"), t("State"), t("Attempts"), t("Started"), t("Took"), t("Output or error")),
        (
            (
                step.index + 1,
                step.step_type,
                tell_step(step.status, step.error_message),
                step.attempts,
                from_now(step.started_at) if step.started_at else None,
                f"{step.completed_at - step.started_at:.1f} s"
                if step.completed_at is not None and step.started_at is not None
                else None,
                step.error_message
                or (orjson.dumps(step.output).decode()[:500] if step.output is not None else None),
            )
            for step in run.steps
        ),
        empty="",
    )
    if run.earlier:
        say(t("Before they were run again:"))
        print_table(
            ("", t("State"), t("Attempts"), t("Run again"), t("Output or error")),
            (
                (
                    result.step_index + 1,
                    tell_step(result.status, result.error_message),
                    result.attempts,
                    from_now(result.replaced_at),
                    result.error_message
                    or (orjson.dumps(result.output).decode()[:500] if result.output is not None else None),
                )
                for result in run.earlier
            ),
            empty="",
        )


@app.command(help=t("Start a template for items; each version of an item once, unless forced."))
def start(
    context: typer.Context,
    template: Annotated[
        str, typer.Argument(metavar="TEMPLATE", help=t("The template's name or number, as listed."))
    ],
    item_ids: Annotated[
        list[int] | None,
        typer.Argument(metavar="ITEM…", max=BIGGEST, help=t("The items' numbers, as listed.")),
    ] = None,
    source: Sources = None,
    folder: Folders = None,
    type_name: Types = None,
    search: Search = None,
    all_: Annotated[bool, typer.Option("--all", help=t("For every item that is stored."))] = False,
    force: Annotated[
        bool, typer.Option("--force", help=t("Also for items that already have a run."))
    ] = False,
    setting: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            help=t(
                "A key of the runtime config, as KEY=VALUE; VALUE may be JSON, or @FILE (@-: the standard input)."
            ),
        ),
    ] = None,
    json: Json = False,
) -> None:
    from headwater.store.pipelines.starting import find_item_ids, start_runs
    from headwater.store.pipelines.templates import find_template
    from headwater.store.reading.search import index_all
    from headwater.store.reading.selection import EVERYTHING

    session: Session = context.obj
    runtime_config = _read_runtime(setting or [])
    with session.open_store() as store:
        with store.reading() as connection:
            selection = read_selection(connection, source, folder, type_name, search)
        if bool(item_ids) + (selection != EVERYTHING) + all_ != 1:
            raise InputError(
                "say for which items: their numbers, --source, --folder, --type, --search or --all"
            )
        if selection.search is not None:
            index_all(store, time.time())
        with store.reading() as connection:
            its_template = find_template(connection, template)
            wanted = find_item_ids(connection, item_ids or None, selection)
        started: list[int] = []

        def start_some(connection: "Connection", part: list[int]) -> None:
            started.extend(
                start_runs(
                    connection,
                    its_template,
                    part,
                    _now(connection),
                    runtime_config=runtime_config,
                    forced=force,
                )
            )

        _in_batches(store, wanted, t("Starting"), start_some, quiet=json)
    if json:
        print_json({"started": started})
    else:
        say(
            t("started {count} {count:run|runs} of template {name}").format(
                count=len(started), name=its_template.name
            )
        )


@app.command(help=t("Rerun runs from their first step or a later one; earlier outputs are kept."))
def rerun(
    context: typer.Context,
    run_ids: Ids = None,
    first: Annotated[int, typer.Option("--from", min=1, help=t("The number of the step to begin with."))] = 1,
    status: State = None,
    template: OfTemplate = None,
    source: OfSource = None,
    hours: Hours = None,
    json: Json = False,
) -> None:
    from headwater.store.pipelines.starting import rerun as rerun_one

    wanted = (run_ids, status, template, source, hours)
    message = t("{count} {count:run begins|runs begin} again at step {number}")
    _for_each(
        context.obj,
        wanted,
        lambda connection, run_id: rerun_one(connection, run_id, first - 1, _now(connection)),
        t("Repeating"),
        lambda count: message.format(count=count, number=first),
        json=json,
    )


@app.command(help=t("Retry failed or cancelled runs from the step they ended in."))
def retry(
    context: typer.Context,
    run_ids: Ids = None,
    failed: Failed = False,
    template: OfTemplate = None,
    source: OfSource = None,
    hours: Hours = None,
    json: Json = False,
) -> None:
    from headwater.store.pipelines.starting import retry as retry_one

    message = t("{count} {count:run goes|runs go} on")
    _for_each(
        context.obj,
        (run_ids, "failed" if failed else None, template, source, hours),
        lambda connection, run_id: retry_one(connection, run_id, _now(connection)),
        t("Retrying"),
        lambda count: message.format(count=count),
        json=json,
    )


@app.command(help=t("End runs. A step that is running is stopped."))
def cancel(
    context: typer.Context,
    run_ids: Ids = None,
    status: State = None,
    template: OfTemplate = None,
    source: OfSource = None,
    json: Json = False,
) -> None:
    from headwater.store.pipelines.starting import cancel as cancel_one

    def cancel_it(connection: "Connection", run_id: int) -> None:
        cancel_one(connection, run_id, _now(connection))

    message = t("cancelled {count} {count:run|runs}")
    _for_each(
        context.obj,
        (run_ids, status, template, source, None),
        cancel_it,
        t("Cancelling"),
        lambda count: message.format(count=count),
        json=json,
    )


def _for_each(
    session: Session,
    wanted: tuple[list[int] | None, str | None, str | None, str | None, float | None],
    work: "Callable[[Connection, int], None]",
    title: str,
    summary: Callable[[int], str],
    *,
    json: bool,
) -> None:
    """Do `work` with every run that is wanted. With one named run its error is ours, else a line each."""
    from headwater.store.pipelines.starting import find_run_ids

    if not any(value is not None for value in wanted) or wanted[0] == []:
        raise InputError("say which runs: their numbers, --failed, --status, --template, --source or --hours")
    done: list[int] = []
    refused: list[tuple[int, str]] = []
    with session.open_store() as store:
        with store.reading() as connection:
            # A number that is not there is for the work to complain of.
            run_ids = wanted[0] or find_run_ids(connection, _query(connection, *wanted))

        def work_on_some(connection: "Connection", part: list[int]) -> None:
            for run_id in part:
                try:
                    work(connection, run_id)
                    done.append(run_id)
                except InputError as error:
                    if len(run_ids) == 1:
                        raise
                    refused.append((run_id, error.render_with_hint()))

        _in_batches(store, run_ids, title, work_on_some, quiet=json)
    if json:
        print_json({"runs": done, "refused": [{"id": run_id, "error": why} for run_id, why in refused]})
    else:
        for _, why in refused:
            say(why, error=True)
        say(summary(len(done)))


def _in_batches(
    store: "Store",
    ids: list[int],
    title: str,
    work: "Callable[[Connection, list[int]], None]",
    *,
    quiet: bool,
) -> None:
    """Work through many rows in transactions short enough for other writers, with a progress bar."""
    with progress_bar(title, quiet=quiet) as advance:
        for begin in range(0, len(ids), BATCH):
            with store.writing() as connection:
                work(connection, ids[begin : begin + BATCH])
            advance(min(begin + BATCH, len(ids)), len(ids), "")


def _query(
    connection: "Connection",
    run_ids: list[int] | None,
    status: Any,
    template: str | None,
    source: str | None,
    hours: float | None,
) -> "RunQuery":
    from headwater.store.collecting.sources import find_source
    from headwater.store.pipelines.starting import RunQuery
    from headwater.store.pipelines.templates import find_template

    return RunQuery(
        run_ids=run_ids,
        status=status,
        template_id=None if template is None else find_template(connection, template).id,
        source_id=None if source is None else find_source(connection, source, removed=True).id,
        since_at=None if hours is None else _now(connection) - 3_600 * hours,
    )


def _now(connection: "Connection") -> float:
    """By the database's clock, as the workers' leases and waits are."""
    from headwater.store.core.clock import database_time

    return database_time(connection)


def _read_runtime(assignments: list[str]) -> dict[str, Any]:
    config: dict[str, Any] = {}
    for assignment in assignments:
        key, equals, value = assignment.partition("=")
        if not equals:
            raise InputError("--set {text} is not KEY=VALUE", text=assignment)
        if value.startswith("@"):
            value = read_text(value[1:])
        try:
            config[key.strip()] = orjson.loads(value)
        except orjson.JSONDecodeError:
            config[key.strip()] = value
    return config
