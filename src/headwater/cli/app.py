"""The `headwater` command: its global options, its groups, and how every error becomes one line."""

import io
import logging
import re
import sys
import traceback
from pathlib import Path
from typing import Annotated

import typer

from headwater import __version__
from headwater.cli import (
    backup,
    collect,
    config,
    cursor,
    demo,
    digest,
    doctor,
    feeds,
    items,
    key,
    outlet,
    pipeline,
    plugins,
    runs,
    scrape,
    serve,
    simulate,
    sitemap,
    source,
    status,
    types,
    worker,
)
from headwater.cli.output import say
from headwater.cli.session import Session
from headwater.errors import HeadwaterError, InputError
from headwater.language import translate as t

app = typer.Typer(
    name="headwater",
    no_args_is_help=True,
    add_completion=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    help=t("Collects feeds, sitemaps and other web sources on time and with as few requests as possible."),
)
app.add_typer(source.app, name="source")
app.add_typer(key.app, name="key")
app.command("types", help=t("List the types of sources and what their configs take."))(types.types)
app.add_typer(sitemap.app, name="sitemap")
app.command("sitemap-to-feed", help=t("Make a feed of a site's sitemaps, or bring it up to date."))(
    sitemap.sitemap_to_feed
)
app.add_typer(cursor.app, name="cursor")
app.add_typer(pipeline.app, name="pipeline")
app.add_typer(runs.app, name="runs")
app.command("worker", help=t("Work on pipeline runs until told to stop."))(worker.worker)
app.command("collect", help=t("Visit the sources that are due."))(collect.collect)
app.command(
    "refresh", help=t("Put sources at the head of the line: a running collector visits them at once.")
)(status.refresh)
app.command("status", help=t("Show how the collection goes."))(status.status)
app.command("items", help=t("List what was collected."))(items.items)
app.command("digest", help=t("Write what is new for a cursor as one document."))(digest.digest)
app.command("parse", help=t("Read a feed and show what is in it; stores nothing."))(feeds.parse)
app.command("discover", help=t("Find the feeds of a page."))(feeds.discover)
app.command("scrape", help=t("Propose selectors for the items of a page and save it as a source."))(
    scrape.scrape
)
app.command("import", help=t("Add every feed of an OPML file or of another reader's export."))(feeds.import_)
app.command("export", help=t("Write all sources as an OPML file."))(feeds.export)
app.command("explain", help=t("Say when a source is visited next, and why."))(simulate.explain)
app.command(
    "simulate", help=t("Replay history through policies: how soon they find what, with how many requests.")
)(simulate.simulate)
app.command("tune", help=t("Propose a budget for a freshness, or say what freshness a budget buys."))(
    simulate.tune
)
app.add_typer(outlet.app, name="outlet")
app.command("publish", help=t("Write outlets to files, each only if it has changed."))(outlet.publish)
app.command("serve", help=t("Run the collector and the dashboard in one process."))(serve.serve)
app.command("config", help=t("Show every setting, its value and where it came from."))(config.config)
app.command("plugins", help=t("List what other packages add to Headwater, and what is wrong with it."))(
    plugins.plugins
)
app.command("doctor", help=t("Look whether all is well, and say what to do where it is not."))(doctor.doctor)
app.command("backup", help=t("Write the whole database to a file, while it is in use or not."))(backup.backup)
app.command("restore", help=t("Fill the database with what is in a backup."))(backup.restore)
app.command("migrate-to", help=t("Move everything to another database, such as SQLite to PostgreSQL."))(
    backup.migrate_to
)
app.command("demo", help=t("Try Headwater with a built-in publisher; needs no internet."))(demo.demo)


def _show_version(wanted: bool) -> None:
    if wanted:
        say(f"headwater {__version__}")
        raise typer.Exit


@app.callback()
def set_up(
    context: typer.Context,
    database: Annotated[
        str | None, typer.Option(help=t("The database URL, instead of HEADWATER_DATABASE_URL."))
    ] = None,
    config_file: Annotated[
        Path | None, typer.Option("--config", help=t("The settings file, instead of ./headwater.toml."))
    ] = None,
    setting: Annotated[
        list[str] | None, typer.Option("--set", help=t("A setting, as NAME=VALUE; may be repeated."))
    ] = None,
    debug: Annotated[  # used by `run`, which sees every error
        bool, typer.Option("--debug", help=t("Show the traceback of an error."))
    ] = False,
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help=t("Show the version."))
    ] = False,
) -> None:
    context.obj = Session(database=database, config_file=config_file, assignments=setting or [])


def run(arguments: list[str]) -> int:
    """Run one command line and answer its exit code."""
    debug = "--debug" in arguments
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # a terminal that has no such letter shows a question mark
    try:
        _refuse_other_encodings(arguments)
        result = app(arguments, standalone_mode=False)
        return result if isinstance(result, int) else 0
    except typer.Exit as exit_:
        return exit_.exit_code
    except (typer.Abort, KeyboardInterrupt):
        return 130
    except typer.TyperException as error:
        if type(error).__name__ == "NoArgsIsHelpError":  # it has shown the help and is no error to us
            return 0
        _complain(error.format_message())
        return error.exit_code
    except BrokenPipeError:
        sys.stderr.close()  # the reader of our output has gone; there is nobody to tell
        return 1
    except HeadwaterError as error:
        if debug:
            _show_traceback()
        else:
            _complain(error.render())
        return error.exit_code
    except Exception as error:
        if debug:
            _show_traceback()
            return 1
        logging.getLogger(__name__).debug("unexpected error", exc_info=True)
        _complain(
            t("unexpected {kind}: {problem}; run it again with --debug for the whole story").format(
                kind=type(error).__name__, problem=" ".join(str(error).split())
            )
        )
        return 1


def _refuse_other_encodings(arguments: list[str]) -> None:
    for argument in arguments:
        if re.search(r"[\ud800-\udfff]", argument):  # how Python holds bytes it could not decode
            raise InputError("{text} is not UTF-8; write it in UTF-8", text=argument)


def _complain(message: str) -> None:
    line = " ".join(message.split())
    say(f"{t('error')}: {line}", error=True)


def _show_traceback() -> None:
    for line in traceback.format_exc().splitlines():
        say(line, error=True)
