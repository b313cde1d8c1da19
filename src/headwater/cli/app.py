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
    alert,
    backup,
    catalogue,
    collect,
    config,
    cursor,
    demo,
    digest,
    doctor,
    feeds,
    gallery,
    items,
    key,
    mcp,
    outlet,
    pipeline,
    plugins,
    rule,
    runs,
    scrape,
    serve,
    sign_in,
    simulate,
    sitemap,
    source,
    source_edit,
    statistics,
    status,
    target,
    types,
    upkeep,
    user,
    worker,
)
from headwater.cli.help import COLLECTING, PIPELINES, READING, SOURCES, START, UPKEEP, arrange
from headwater.cli.output import say
from headwater.cli.session import Session
from headwater.errors import HeadwaterError, InputError
from headwater.language import translate as t

__all__ = ["app", "run", "source_edit"]  # the last adds its commands to those of `source`

app = typer.Typer(
    name="headwater",
    no_args_is_help=True,
    add_completion=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    help=t("Collects feeds, sitemaps and other web sources on time and with as few requests as possible."),
)
app.command(
    "demo", rich_help_panel=START, help=t("Try Headwater with a built-in publisher; needs no internet.")
)(demo.demo)
app.command("serve", rich_help_panel=START, help=t("Run the dashboard, and collectors beside it."))(
    serve.serve
)
app.command("status", rich_help_panel=START, help=t("Show the status of collecting."))(status.status)
app.command("doctor", rich_help_panel=START, help=t("Check the installation and suggest fixes."))(
    doctor.doctor
)
app.add_typer(source.app, name="source", rich_help_panel=SOURCES)
app.add_typer(catalogue.app, name="catalogue", rich_help_panel=SOURCES)
app.command(
    "import", rich_help_panel=SOURCES, help=t("Add every feed of an OPML file or of another reader's export.")
)(feeds.import_)
app.command("export", rich_help_panel=SOURCES, help=t("Write all sources as an OPML file."))(feeds.export)
app.command("discover", rich_help_panel=SOURCES, help=t("Find the feeds of a page."))(feeds.discover)
app.command("parse", rich_help_panel=SOURCES, help=t("Read a feed and show what is in it; stores nothing."))(
    feeds.parse
)
app.command(
    "scrape",
    rich_help_panel=SOURCES,
    help=t("Propose selectors for the items of a page and save it as a source."),
)(scrape.scrape)
app.command(
    "types", rich_help_panel=SOURCES, help=t("List the types of sources and what their configs take.")
)(types.types)
app.add_typer(sitemap.app, name="sitemap", rich_help_panel=SOURCES)
app.command(
    "sitemap-to-feed",
    rich_help_panel=SOURCES,
    help=t("Make a feed of a site's sitemaps, or bring it up to date."),
)(sitemap.sitemap_to_feed)
app.command("collect", rich_help_panel=COLLECTING, help=t("Visit the sources that are due."))(collect.collect)
app.command(
    "refresh",
    rich_help_panel=COLLECTING,
    help=t("Put sources at the head of the line: a running collector visits them at once."),
)(status.refresh)
app.command("explain", rich_help_panel=COLLECTING, help=t("Explain when a source is visited next, and why."))(
    simulate.explain
)
app.command(
    "statistics",
    rich_help_panel=COLLECTING,
    help=t("Show how often sources publish, and how many visits find something new."),
)(statistics.statistics)
app.command(
    "simulate",
    rich_help_panel=COLLECTING,
    help=t("Replay history through policies: how soon they find items, and with how many requests."),
)(simulate.simulate)
app.command(
    "tune",
    rich_help_panel=COLLECTING,
    help=t("Propose a budget for a freshness target, or show the freshness that a budget buys."),
)(simulate.tune)
app.command("items", rich_help_panel=READING, help=t("List what was collected."))(items.items)
app.add_typer(cursor.app, name="cursor", rich_help_panel=READING)
app.add_typer(digest.app, name="digest", rich_help_panel=READING)
app.add_typer(outlet.app, name="outlet", rich_help_panel=READING)
app.command(
    "publish", rich_help_panel=READING, help=t("Write outlets to files, each only if it has changed.")
)(outlet.publish)
app.add_typer(pipeline.app, name="pipeline", rich_help_panel=PIPELINES)
app.add_typer(gallery.app, name="gallery", rich_help_panel=PIPELINES)
app.add_typer(runs.app, name="runs", rich_help_panel=PIPELINES)
app.add_typer(target.app, name="target", rich_help_panel=PIPELINES)
app.add_typer(rule.app, name="rule", rich_help_panel=READING)
app.add_typer(alert.app, name="alert", rich_help_panel=UPKEEP)
app.command("worker", rich_help_panel=PIPELINES, help=t("Run pipeline steps until stopped."))(worker.worker)
app.command(
    "config", rich_help_panel=UPKEEP, help=t("Show every setting, its value and where it came from.")
)(config.config)
app.command(
    "upkeep",
    rich_help_panel=UPKEEP,
    help=t("Delete what has outlived its retention, now instead of within the hour."),
)(upkeep.upkeep)
app.command(
    "mcp",
    rich_help_panel=UPKEEP,
    help=t("Serve agents by the Model Context Protocol, with the rights of an API key."),
)(mcp.mcp)
app.add_typer(user.app, name="user", rich_help_panel=UPKEEP)
app.add_typer(key.app, name="key", rich_help_panel=UPKEEP)
app.add_typer(sign_in.app, name="session", rich_help_panel=UPKEEP)
app.command(
    "sign-in-link", rich_help_panel=UPKEEP, help=t("Make a link that signs in to the dashboard once.")
)(sign_in.sign_in_link)
app.command(
    "backup", rich_help_panel=UPKEEP, help=t("Write the whole database to a file; it may be in use.")
)(backup.backup)
app.command("restore", rich_help_panel=UPKEEP, help=t("Fill the database with what is in a backup."))(
    backup.restore
)
app.command(
    "migrate-to",
    rich_help_panel=UPKEEP,
    help=t("Move everything to another database, such as SQLite to PostgreSQL."),
)(backup.migrate_to)
app.command(
    "plugins",
    rich_help_panel=UPKEEP,
    help=t("List what other packages add to Headwater, and what is wrong with it."),
)(plugins.plugins)


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
        result = arrange(typer.main.get_command(app))(arguments, standalone_mode=False)
        return result if isinstance(result, int) else 0
    except typer.Exit as exit_:
        return exit_.exit_code
    except (typer.Abort, KeyboardInterrupt):
        return 130
    except typer.TyperException as error:
        if type(error).__name__ == "NoArgsIsHelpError":  # it has shown the help and is not an error to us
            return 0
        _complain(_describe(error))
        return error.exit_code
    except BrokenPipeError:
        sys.stderr.close()  # the reader of our output has gone; there is no one to tell
        return 1
    except HeadwaterError as error:
        if debug:
            _show_traceback()
        else:
            _complain(error.render_with_hint())
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


def _describe(error: typer.TyperException) -> str:
    """A mistake on the command line in plain words, without those of the library that checks values."""
    from pydantic import ValidationError

    if not isinstance(error.__cause__, ValidationError):
        return error.format_message()
    from headwater.collectors.validation_errors import describe_mistake

    problem = describe_mistake(dict(error.__cause__.errors()[0])).render()
    parameter = getattr(error, "param", None)
    name = parameter.get_error_hint() if parameter is not None else ""
    return f"{str(name).strip(chr(39))}: {problem}" if name else problem


def _complain(message: str) -> None:
    line = " ".join(message.split())
    say(f"{t('error')}: {line}", error=True)


def _show_traceback() -> None:
    for line in traceback.format_exc().splitlines():
        say(line, error=True)
