"""`headwater rule …`: what happens automatically with new items of a user's subscriptions."""

import time
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from headwater.cli.output import Json, print_json, print_table, say
from headwater.cli.session import Session
from headwater.errors import InputError, NotFoundError
from headwater.language import translate as t

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from headwater.model import User
    from headwater.store.people.rules import Rule

app = typer.Typer(no_args_is_help=True, help=t("Mute, star, tag or announce new items by rules."))

UserName = Annotated[
    str | None,
    typer.Option("--user", metavar="NAME", help=t("The owner of the rules. Default: the first admin.")),
]
RuleName = Annotated[str, typer.Argument(help=t("The rule's name."))]
Words = Annotated[
    list[str] | None, typer.Option("--word", help=t("One of these words must occur; may be repeated."))
]
NotWords = Annotated[
    list[str] | None, typer.Option("--not-word", help=t("None of these words may occur; may be repeated."))
]
Patterns = Annotated[
    list[str] | None,
    typer.Option("--pattern", help=t("One of these regular expressions must match; may be repeated.")),
]
Authors = Annotated[list[str] | None, typer.Option("--author", help=t("By this author; may be repeated."))]
Languages = Annotated[
    list[str] | None, typer.Option("--language", help=t("In this language; may be repeated."))
]
Filter = Annotated[
    str | None, typer.Option("--filter", metavar="JSON", help=t("A config of filter_content, as JSON."))
]
SourceIds = Annotated[
    list[int] | None, typer.Option("--source", metavar="N", help=t("Of this source only; may be repeated."))
]


@app.command("list", help=t("List a person's rules."))
def list_(context: typer.Context, user: UserName = None, json: Json = False) -> None:
    from headwater.store.people.rules import list_rules
    from headwater.views.rules import rule_json

    session: Session = context.obj
    with session.open_store() as store, store.reading() as connection:
        found = list_rules(connection, _owner(connection, user).id)
    if json:
        print_json([rule_json(rule) for rule in found])
        return
    print_table(
        (t("Name"), t("Looks for"), t("Does"), t("Matched"), t("Active")),
        (
            (
                rule.name,
                "; ".join(f"{key}: {_told(value)}" for key, value in rule.filter.items()),
                _told_actions(rule),
                str(rule.matched),
                t("yes") if rule.is_active else t("no"),
            )
            for rule in found
        ),
        empty=t("There are no rules yet."),
    )


@app.command(help=t("Add a rule for items that arrive from now on. All its conditions must hold."))
def add(
    context: typer.Context,
    name: RuleName,
    word: Words = None,
    not_word: NotWords = None,
    pattern: Patterns = None,
    author: Authors = None,
    language: Languages = None,
    filter_: Filter = None,
    source: SourceIds = None,
    mute: Annotated[bool, typer.Option("--mute", help=t("Count it as read."))] = False,
    star: Annotated[bool, typer.Option("--star", help=t("Star it."))] = False,
    later: Annotated[bool, typer.Option("--read-later", help=t("Add it to read later."))] = False,
    tag: Annotated[list[str] | None, typer.Option("--tag", help=t("Tag it; may be repeated."))] = None,
    notify: Annotated[bool, typer.Option("--notify", help=t("Notify the user in the web app."))] = False,
    to: Annotated[
        str | None,
        typer.Option(
            "--to", metavar="TARGET", help=t("Send a message to a target; only for rules of admins.")
        ),
    ] = None,
    user: UserName = None,
    json: Json = False,
) -> None:
    from headwater.people.rules import read_filter
    from headwater.store.people.rules import Rule, RuleActions, add_rule
    from headwater.store.publishing.targets import refuse_unknown_targets
    from headwater.views.rules import rule_json

    wanted = read_filter(_filter(word, not_word, pattern, author, language, filter_))
    actions = RuleActions(
        mute=mute, star=star, read_later=later, tags=tuple(tag or ()), notify=notify, target=to
    )
    session: Session = context.obj
    with session.open_store() as store, store.writing() as connection:
        owner = _owner(connection, user)
        if to is not None:
            if not owner.is_admin:
                raise InputError("only an admin's rules can send to a target; choose notify")
            refuse_unknown_targets(connection, [to])
        made = add_rule(
            connection, Rule(0, owner.id, name, wanted, tuple(source or ()), actions), time.time()
        )
    if json:
        print_json(rule_json(made))
        return
    say(t("rule {name} is saved").format(name=made.name))


@app.command(
    "try", help=t("Show how many items of the last week a rule would have matched. Changes nothing.")
)
def try_(
    context: typer.Context,
    word: Words = None,
    not_word: NotWords = None,
    pattern: Patterns = None,
    author: Authors = None,
    language: Languages = None,
    filter_: Filter = None,
    source: SourceIds = None,
    user: UserName = None,
    json: Json = False,
) -> None:
    from headwater.people.rules import read_filter, read_week, try_filter
    from headwater.views.rules import trial_json

    wanted = read_filter(_filter(word, not_word, pattern, author, language, filter_))
    session: Session = context.obj
    with session.open_store() as store, store.reading() as connection:
        week, is_cut = read_week(connection, _owner(connection, user).id, tuple(source or ()), time.time())
    trial = try_filter(wanted, week, is_cut=is_cut)
    if json:
        print_json(trial_json(trial))
        return
    say(
        t("This rule would have matched {matched} of {count} {count:entry|entries}.").format(
            matched=trial.matched, count=trial.considered
        )
    )
    for item in trial.examples:
        say(f"  {item.title}")


@app.command(help=t("Pause a rule."))
def pause(context: typer.Context, name: RuleName, user: UserName = None) -> None:
    _switch(context, name, user, is_active=False)
    say(t("rule {name} is paused").format(name=name))


@app.command(help=t("Resume a rule that was paused."))
def resume(context: typer.Context, name: RuleName, user: UserName = None) -> None:
    _switch(context, name, user, is_active=True)
    say(t("rule {name} is active").format(name=name))


@app.command(help=t("Delete a rule. What it did stays."))
def remove(context: typer.Context, name: RuleName, user: UserName = None) -> None:
    from headwater.store.people.rules import remove_rule

    session: Session = context.obj
    with session.open_store() as store, store.writing() as connection:
        rule = _named(connection, name, user)
        remove_rule(connection, rule.user_id, rule.id)
    say(t("the rule is deleted"))


def _switch(context: typer.Context, name: str, user: str | None, *, is_active: bool) -> None:
    from headwater.store.people.rules import change_rule

    session: Session = context.obj
    with session.open_store() as store, store.writing() as connection:
        change_rule(connection, replace(_named(connection, name, user), is_active=is_active))


def _owner(connection: "Connection", name: str | None) -> "User":
    from headwater.store.people.users import first_admin, require_user

    return first_admin(connection) if name is None else require_user(connection, name)


def _named(connection: "Connection", name: str, user: str | None) -> "Rule":
    from headwater.store.people.rules import list_rules

    found = [rule for rule in list_rules(connection, _owner(connection, user).id) if rule.name == name]
    if not found:
        raise NotFoundError("there is no rule {id}", id=name)
    return found[0]


def _filter(
    word: list[str] | None,
    not_word: list[str] | None,
    pattern: list[str] | None,
    author: list[str] | None,
    language: list[str] | None,
    filter_: str | None,
) -> dict[str, Any]:
    import orjson

    given: dict[str, Any] = {}
    if filter_ is not None:
        try:
            read = orjson.loads(filter_)
        except ValueError:
            read = None
        if not isinstance(read, dict):
            raise InputError("the filter is not a JSON object")
        given = read
    lists = {
        "include_keywords": word,
        "exclude_keywords": not_word,
        "include_patterns": pattern,
        "authors": author,
        "languages": language,
    }
    return given | {key: values for key, values in lists.items() if values}


def _told(value: Any) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)


def _told_actions(rule: "Rule") -> str:
    actions = rule.actions
    told = [
        (actions.mute, t("mute")),
        (actions.star, t("star")),
        (actions.read_later, t("read later")),
        (actions.notify, t("notify")),
    ]
    words = [word for is_done, word in told if is_done]
    return ", ".join([*words, *actions.tags, *([actions.target] if actions.target else [])])
