"""`headwater backup`, `restore` and `migrate-to`: the whole database in a file, back, or in another database."""

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from headwater.cli.output import Json, iso, print_json, progress_bar, say
from headwater.cli.session import Session
from headwater.language import translate as t
from headwater.wording import ago

if TYPE_CHECKING:
    from headwater.store.core.database import Store

RECENT_SECONDS = 600.0  # within which an idle collector has most likely made a visit

File = Annotated[Path, typer.Argument(metavar="FILE", help=t("The backup file."))]


def backup(context: typer.Context, file: File, json: Json = False) -> None:
    from headwater.store.core.clock import measured_clock
    from headwater.store.transfer.backup import write_backup

    session: Session = context.obj
    with session.open_store() as store, progress_bar(t("Backing up"), quiet=json) as advance:
        contents = write_backup(store, file, measured_clock(store)(), advance)
    if json:
        print_json(asdict(contents) | {"file": str(file), "created_at": iso(contents.created_at)})
        return
    say(
        t("{count} {count:row is|rows are} in {file}, read back and checked").format(
            count=contents.total, file=file
        )
    )
    say(t("It holds every secret of the database; keep it where only you can read it."))


def restore(
    context: typer.Context,
    file: File,
    replace: Annotated[
        bool, typer.Option("--replace", help=t("Replace everything in the database."))
    ] = False,
    json: Json = False,
) -> None:
    from headwater.store.core.clock import measured_clock
    from headwater.store.core.database import Store
    from headwater.store.transfer.backup import restore_backup
    from headwater.store.transfer.move import index_moved

    session: Session = context.obj
    session.log_to_terminal()
    with Store(session.settings.database) as store:
        with progress_bar(t("Restoring"), quiet=json) as advance:
            contents = restore_backup(store, file, advance, replace=replace)
        with progress_bar(t("Indexing for search"), quiet=json) as advance:
            index_moved(store, measured_clock(store)(), advance)
    if json:
        print_json(asdict(contents) | {"file": str(file), "created_at": iso(contents.created_at)})
    else:
        say(
            t("{count} {count:row|rows} of {time} {count:is|are} restored").format(
                count=contents.total, time=iso(contents.created_at)
            )
        )


def migrate_to(
    context: typer.Context,
    url: Annotated[str, typer.Argument(metavar="URL", help=t("postgresql://… or sqlite:///FILE"))],
    start_over: Annotated[
        bool, typer.Option("--start-over", help=t("Discard what an interrupted move has copied."))
    ] = False,
    json: Json = False,
) -> None:
    from headwater.store.core.clock import measured_clock
    from headwater.store.core.database import Store
    from headwater.store.transfer.move import index_moved, move

    session: Session = context.obj
    with session.open_store() as origin, Store(url) as target:
        now = measured_clock(origin)()
        if not json:
            _warn(origin, now)
        with progress_bar(t("Moving"), quiet=json) as advance:
            moved = move(origin, target, now, advance, start_over=start_over)
        with progress_bar(t("Indexing for search"), quiet=json) as advance:
            index_moved(target, now, advance)
        shown = target.shown_url
    if json:
        print_json(asdict(moved))
        return
    if moved.resumed_after:
        say(t("an interrupted move had copied {count} {count:row|rows}").format(count=moved.resumed_after))
    say(
        t("{count} {count:row is|rows are} in {url}, as many as here").format(
            count=sum(moved.rows.values()), url=shown
        )
    )
    say(t("Set HEADWATER_DATABASE_URL to it everywhere before you start anything again."))


def _warn(origin: "Store", now: float) -> None:
    """Say that collectors have to be stopped, and whether one seems to run."""
    from headwater.store.transfer.move import last_visit_at

    say(t("Stop every `headwater serve`, `collect` and `worker` first: what they write now is not moved."))
    with origin.reading() as connection:
        last_at = last_visit_at(connection)
    if last_at is not None and now - last_at < RECENT_SECONDS:
        say(t("A collector seems to be running: the last visit was {when}.").format(when=ago(last_at, now)))
