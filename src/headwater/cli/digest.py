"""`headwater digest …`: what is new, gathered on a schedule, stored, sent and published."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from headwater.cli.configs import Configs, read_config
from headwater.cli.output import Json, from_now, print_document, print_json, print_table, say, warn
from headwater.cli.selection import Folders, Has, MinScore, Search, Sources, Tags, Types, read_selection
from headwater.cli.session import Session
from headwater.errors import Text
from headwater.language import translate as t

if TYPE_CHECKING:
    from headwater.publish.digest_context import DigestContext
    from headwater.store.publishing.digests import Digest

app = typer.Typer(no_args_is_help=True, help=t("Gather what is new on a schedule, and send or publish it."))

Name = Annotated[str, typer.Argument(metavar="NAME", help=t("The digest's name."))]
Number = Annotated[int, typer.Argument(metavar="ISSUE", help=t("The issue's number."))]
Title = Annotated[str | None, typer.Option(help=t("The digest's title; else its name."))]
Schedule = Annotated[
    str | None,
    typer.Option(help=t("When: every 6 hours, daily 07:30, weekly mon 07:30, or the five fields of cron.")),
]
Zone = Annotated[str | None, typer.Option(help=t("The time zone of the schedule, as Europe/Berlin."))]
To = Annotated[list[str] | None, typer.Option("--to", metavar="TARGET", help=t("A target; may be repeated."))]


class When(StrEnum):
    STORED = "stored"
    PROCESSED = "processed"


class Write(StrEnum):
    LIST = "list"
    INTRODUCTION = "introduction"
    TEXT = "text"


WhenOption = Annotated[
    When | None,
    typer.Option(help=t("Whether it takes items as they are stored, or once pipelines have processed them.")),
]
WriteOption = Annotated[
    Write | None,
    typer.Option(help=t("A plain list, a model's introduction before it, or a model's text.")),
]
Languages = Annotated[
    list[str] | None, typer.Option("--language", help=t("An issue in this language; may be repeated."))
]


@app.command(help=t("Add a digest. Its first issue is about what comes from now on."))
def add(
    context: typer.Context,
    name: Name,
    schedule: Schedule = None,
    title: Title = None,
    zone: Zone = None,
    to: To = None,
    source: Sources = None,
    folder: Folders = None,
    type_name: Types = None,
    search: Search = None,
    has: Has = None,
    tag: Tags = None,
    min_score: MinScore = None,
    when: WhenOption = None,
    write: WriteOption = None,
    language: Languages = None,
    config: Configs = None,
    all_items: Annotated[
        bool, typer.Option("--all", help=t("The first issue is about all that is stored."))
    ] = False,
    json: Json = False,
) -> None:
    from headwater.publish.digests import read_digest
    from headwater.publish.previews import digest_hints
    from headwater.store.publishing.digests import Digest, add_digest

    session: Session = context.obj
    needs_results = bool(has or tag or min_score is not None)
    with session.open_store() as store, store.writing() as connection:
        selection = read_selection(
            connection, source, folder, type_name, search, has=has, tag=tag, min_score=min_score
        )
        digest = Digest(
            name,
            title or name,
            schedule or "daily 07:00",
            zone or "UTC",
            selection,
            when.value if when else "processed" if needs_results else "stored",
            _config(config, write, language),
            tuple(to or ()),
        )
        now = time.time()
        added = add_digest(connection, read_digest(digest, now), now, from_now=not all_items)
        hints = digest_hints(connection, added)
    if json:
        _print(added)
    else:
        warn(hints)
        say(
            t("added digest {name}; its next issue is due {when}").format(
                name=name, when=from_now(added.due_at)
            )
        )


@app.command(help=t("Change a digest; what is not given stays as it is."))
def edit(
    context: typer.Context,
    name: Name,
    schedule: Schedule = None,
    title: Title = None,
    zone: Zone = None,
    to: To = None,
    source: Sources = None,
    folder: Folders = None,
    type_name: Types = None,
    search: Search = None,
    has: Has = None,
    tag: Tags = None,
    min_score: MinScore = None,
    when: WhenOption = None,
    write: WriteOption = None,
    language: Languages = None,
    config: Configs = None,
    enabled: Annotated[bool | None, typer.Option("--on/--off", help=t("Make issues, or pause."))] = None,
    json: Json = False,
) -> None:
    from dataclasses import replace

    from headwater.publish.digests import read_digest
    from headwater.publish.previews import digest_hints
    from headwater.store.publishing.digests import change_digest, get_digest
    from headwater.store.reading.selection import EVERYTHING

    session: Session = context.obj
    with session.open_store() as store, store.writing() as connection:
        before = get_digest(connection, name)
        selection = read_selection(
            connection, source, folder, type_name, search, has=has, tag=tag, min_score=min_score
        )
        given: dict[str, Any] = {
            "title": title,
            "schedule": schedule,
            "zone": zone,
            "selection": None if selection == EVERYTHING else selection,
            "when": when and when.value,
            "config": {**before.config, **_config(config, write, language)},
            "targets": None if to is None else tuple(to),
            "is_enabled": enabled,
        }
        changes = {key: value for key, value in given.items() if value is not None}
        now = time.time()
        wanted = read_digest(replace(before, **changes), now)
        if schedule or zone or enabled:
            changes["due_at"] = wanted.due_at
        changed = change_digest(connection, name, now, **changes)
        hints = digest_hints(connection, changed)
    if json:
        _print(changed)
    else:
        warn(hints)
        say(t("changed digest {name}").format(name=name))


@app.command("list", help=t("List all digests."))
def list_(context: typer.Context, json: Json = False) -> None:
    from headwater.publish.digests import shown_digest
    from headwater.store.publishing.digests import list_digests
    from headwater.store.reading.selection import tell_selections

    session: Session = context.obj
    with session.open_store() as store, store.reading() as connection:
        found = list_digests(connection)
        told = tell_selections(connection, [digest.selection for digest in found])
    if json:
        print_json([shown_digest(digest) for digest in found])
        return
    print_table(
        (t("Name"), t("Title"), t("Schedule"), t("Items"), t("Sent to"), t("Next issue")),
        (
            (
                digest.name,
                digest.title,
                f"{digest.schedule} {digest.zone}",
                shows,
                ", ".join(digest.targets),
                from_now(digest.due_at) if digest.is_enabled else t("off"),
            )
            for digest, shows in zip(found, told, strict=True)
        ),
        empty=t("There are no digests yet. Add one with: headwater digest add NAME --schedule 'daily 07:30'"),
    )


@app.command(help=t("List issues that were made, newest first."))
def issues(
    context: typer.Context,
    name: Annotated[str | None, typer.Argument(metavar="NAME", help=t("Of this digest only."))] = None,
    limit: Annotated[int, typer.Option(min=1, max=1_000, help=t("How many, newest first."))] = 20,
    json: Json = False,
) -> None:
    from headwater.store.publishing.digests import list_issues
    from headwater.views.digests import listed_issue_json

    session: Session = context.obj
    with session.open_store() as store, store.reading() as connection:
        found = list_issues(connection, name, limit=limit)
    if json:
        print_json([listed_issue_json(issue) for issue in found])
        return
    print_table(
        ("ID", t("Made"), t("Digest"), t("Title"), t("Items"), t("Problem")),
        (
            (
                issue.id,
                from_now(issue.made_at),
                issue.digest,
                issue.title,
                issue.item_count,
                issue.error_message or "",
            )
            for issue in found
        ),
        empty=t("No issue has been made yet."),
    )


@app.command(help=t("Show one issue."))
def show(
    context: typer.Context,
    number: Number,
    html: Annotated[bool, typer.Option("--html", help=t("As HTML."))] = False,
    json: Json = False,
) -> None:
    from headwater.store.publishing.digests import get_issue
    from headwater.views.digests import issue_json

    session: Session = context.obj
    with session.open_store() as store, store.reading() as connection:
        issue = get_issue(connection, number)
    if json:
        print_json(issue_json(issue))
    else:
        print_document(issue.html if html else issue.text)


@app.command(help=t("Show the next issue as it would be made now; stores and sends nothing."))
def preview(context: typer.Context, name: Name, json: Json = False) -> None:
    from headwater.publish.previews import preview_issues

    session: Session = context.obj
    made = asyncio.run(
        _with_context(
            session, lambda store, digest_context: preview_issues(store, digest_context, name, time.time())
        )
    )
    if json:
        print_json([{"title": each.title, "text": each.text, "html": each.html} for each in made.issues])
        return
    if not made.issues:
        say(t("No item matches this digest."))
    elif made.is_sample:
        warn([Text("There is nothing new. This is an issue about the newest items that match.")])
    for each in made.issues:
        print_document(each.text)


@app.command(help=t("Make the next issue now; a running Headwater makes it within seconds."))
def make(context: typer.Context, name: Name, json: Json = False) -> None:
    from headwater.store.publishing.digests import make_due

    session: Session = context.obj
    with session.open_store() as store, store.writing() as connection:
        due = make_due(connection, name, time.time())
    if json:
        _print(due)
    else:
        say(t("the next issue of {name} is due now").format(name=name))


@app.command(help=t("Make an issue again from the same items; it is not sent."))
def remake(context: typer.Context, number: Number, json: Json = False) -> None:
    from headwater.publish.digests import remake_issue
    from headwater.views.digests import issue_json

    session: Session = context.obj
    made = asyncio.run(
        _with_context(
            session, lambda store, digest_context: remake_issue(store, digest_context, number, time.time())
        )
    )
    if json:
        print_json(issue_json(made))
    else:
        print_document(made.text)


@app.command(help=t("Send an issue again, to its targets or to others."))
def send(context: typer.Context, number: Number, to: To = None) -> None:
    from headwater.publish.digests import send_issue

    session: Session = context.obj
    with session.open_store() as store, store.writing() as connection:
        count = send_issue(connection, number, time.time(), to or ())
    say(Text("{count} {count:message is|messages are} on {count:its|their} way", count=count).render())


@app.command(help=t("Remove a digest with its issues."))
def remove(context: typer.Context, name: Name) -> None:
    from headwater.store.publishing.digests import remove_digest

    session: Session = context.obj
    with session.open_store() as store, store.writing() as connection:
        remove_digest(connection, name)
    say(t("removed digest {name}").format(name=name))


async def _with_context(session: Session, act: "Callable[[Any, DigestContext], Awaitable[Any]]") -> Any:
    from headwater.publish.digest_context import open_digest_context

    with session.open_store() as store:
        async with open_digest_context(store, session.settings, time.time) as digest_context:
            return await act(store, digest_context)


def _config(given: list[str] | None, write: Write | None, language: list[str] | None) -> dict[str, Any]:
    config = read_config(given)
    if write is not None:
        config["write"] = write.value
    if language is not None:
        config["languages"] = language
    return config


def _print(digest: "Digest") -> None:
    from headwater.publish.digests import shown_digest

    print_json(shown_digest(digest))
