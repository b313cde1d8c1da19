"""People's rules for new items: what they look for, what they do, and the place up to which they have been applied.

A rule's `filter` is a config of the step `filter_content`. Rules are applied after items are stored, so collecting
neither waits nor pays for them: the process that applies them reads items in the order of their positions, and moves
the place in the transaction that writes what the rules did. Of two who do it at once, the second finds the place moved.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal

import orjson
from sqlalchemy import Connection, Row, select

from headwater.errors import ConflictError, InputError, NotFoundError
from headwater.model import Json, StoredItem
from headwater.store.core.bulk import batches, insert_rows, select_by, storable
from headwater.store.core.settings import get_setting, lock_setting, set_setting
from headwater.store.core.tables import items, notifications, rules
from headwater.store.people.folders import lock_user
from headwater.store.people.marks import DAY, add_tags, read_tag, set_read_later, set_starred
from headwater.store.people.reading import mark_read
from headwater.store.people.stories import NewKeys, join_stories, subscribed_among, write_keys
from headwater.store.publishing.outbox import NewDelivery, put_in_outbox
from headwater.store.reading.items import select_items, stored_item
from headwater.store.reading.positions import last_settled_position

FOLLOWED_KEY: Final = "people.followed_position"
LONGEST_NAME = 200
MOST_RULES = 100  # of one person
MOST_SOURCES = 1_000
LONGEST_TEXT = 20_000  # characters of an item that rules look at
NEWS_SECONDS = 2 * DAY  # an item that was published before that is not told of: its source is new to us


@dataclass(frozen=True, slots=True)
class RuleActions:
    """What a rule does with an item. `target`: the name of a target that is told, of admins' rules only."""

    mute: bool = False  # it counts as read from the start
    star: bool = False
    read_later: bool = False
    read_later_days: Literal[1, 7, 30, "never"] = 7
    tags: tuple[str, ...] = ()
    notify: bool = False
    target: str | None = None

    @property
    def is_empty(self) -> bool:
        return not (self.mute or self.star or self.read_later or self.tags or self.notify or self.target)


@dataclass(frozen=True, slots=True)
class Rule:
    """A person's rule. No `source_ids`: for all their subscriptions."""

    id: int
    user_id: int
    name: str
    filter: Json = field(hash=False)
    source_ids: tuple[int, ...] = ()
    actions: RuleActions = RuleActions()
    is_active: bool = True
    matched: int = 0
    matched_at: float | None = None
    created_at: float = 0.0


@dataclass(frozen=True, slots=True)
class Match:
    """An item that a rule matches."""

    rule: Rule
    item_id: int
    title: str
    url: str | None
    item_at: float


@dataclass(frozen=True, slots=True)
class Trial:
    """What a rule would have matched of a person's entries of the last week, and the newest of those."""

    matched: int
    considered: int
    is_cut: bool  # there were more than a trial looks at
    examples: tuple[StoredItem, ...] = field(hash=False)


_COLUMNS = [rules.c[name] for name in Rule.__dataclass_fields__]


def _rule(row: Row[Any]) -> Rule:
    actions = orjson.loads(row.actions)
    return Rule(
        row.id,
        row.user_id,
        row.name,
        orjson.loads(row.filter),
        tuple(orjson.loads(row.source_ids)),
        RuleActions(**actions | {"tags": tuple(actions.get("tags", ()))}),
        row.is_active,
        row.matched,
        row.matched_at,
        row.created_at,
    )


def list_rules(connection: Connection, user_id: int) -> list[Rule]:
    query = select(*_COLUMNS).where(rules.c.user_id == user_id).order_by(rules.c.id)
    return [_rule(row) for row in connection.execute(query)]


def get_rule(connection: Connection, user_id: int, rule_id: int) -> Rule:
    query = select(*_COLUMNS).where(rules.c.user_id == user_id, rules.c.id == rule_id)
    row = connection.execute(query).first()
    if row is None:
        raise NotFoundError("there is no rule {id}", id=rule_id)
    return _rule(row)


def add_rule(connection: Connection, rule: Rule, now: float) -> Rule:
    """Keep a new rule; its number and counts are given here."""
    lock_user(connection, rule.user_id)
    there = list_rules(connection, rule.user_id)
    if len(there) >= MOST_RULES:
        raise InputError("a person has at most {most} rules", most=MOST_RULES)
    values = _values(connection, there, rule)
    query = rules.insert().values(user_id=rule.user_id, created_at=now, **values).returning(rules.c.id)
    return get_rule(connection, rule.user_id, connection.execute(query).scalar_one())


def change_rule(connection: Connection, rule: Rule) -> Rule:
    """Write a rule's name, filter, sources, actions and whether it is active."""
    lock_user(connection, rule.user_id)
    get_rule(connection, rule.user_id, rule.id)
    values = _values(connection, list_rules(connection, rule.user_id), rule)
    connection.execute(rules.update().where(rules.c.id == rule.id).values(**values))
    return get_rule(connection, rule.user_id, rule.id)


def remove_rule(connection: Connection, user_id: int, rule_id: int) -> None:
    """Delete a rule. What it did stays."""
    get_rule(connection, user_id, rule_id)
    connection.execute(rules.delete().where(rules.c.id == rule_id))


def _values(connection: Connection, there: Sequence[Rule], rule: Rule) -> Json:
    name = " ".join((storable(rule.name) or "").split())
    if not name:
        raise InputError("a rule needs a name")
    if len(name) > LONGEST_NAME:
        raise InputError("a rule's name has at most {limit} characters", limit=LONGEST_NAME)
    if any(each.name == name and each.id != rule.id for each in there):
        raise ConflictError("there is a rule {name} already", name=name)
    if rule.actions.is_empty:
        raise InputError("a rule needs something to do: mute, star, tag, read later or notify")
    refuse_foreign_sources(connection, rule.user_id, rule.source_ids)
    actions = {each: getattr(rule.actions, each) for each in RuleActions.__dataclass_fields__}
    actions["tags"] = [read_tag(tag) for tag in rule.actions.tags]
    return {
        "name": name,
        "filter": storable(orjson.dumps(rule.filter).decode()),
        "source_ids": orjson.dumps(sorted(set(rule.source_ids))).decode(),
        "actions": storable(orjson.dumps(actions).decode()),
        "is_active": rule.is_active,
    }


def refuse_foreign_sources(connection: Connection, user_id: int, source_ids: Sequence[int]) -> None:
    """NotFoundError when a person does not subscribe to one of the sources."""
    own = {
        row[0]
        for row in select_by(
            connection,
            "SELECT source_id FROM subscriptions WHERE user_id = ? AND source_id {values}",
            source_ids,
            "bigint",
            user_id,
        )
    }
    for source_id in source_ids:
        if source_id not in own:
            raise NotFoundError("you do not subscribe to source {id}", id=source_id)


@dataclass(frozen=True, slots=True)
class NewItems:
    """Items that nothing of people's has been applied to yet, and up to which position.

    `item_ids`: all of them that anyone subscribes to; `items`: those that rules may concern, whole.
    """

    after: int
    until: int
    item_ids: tuple[int, ...] = ()
    items: tuple[StoredItem, ...] = ()
    rules: Mapping[int, tuple[Rule, ...]] = field(default_factory=dict, hash=False)  # by the item's source

    @property
    def has_any(self) -> bool:
        return self.until > self.after


def followed_position(connection: Connection) -> int | None:
    """The position up to which rules have been applied; None: never."""
    found = get_setting(connection, FOLLOWED_KEY)
    return None if found is None else int(found)


def read_new_items(connection: Connection, limit: int) -> NewItems:
    """The next items to apply rules to. Only those are read whole that a rule may concern."""
    after = followed_position(connection)
    settled = last_settled_position(connection)
    if after is None or after > settled:
        return NewItems(-1, settled)  # what was stored before there were rules is left alone
    query = (
        select(items.c.id, items.c.source_id, items.c.position)
        .where(items.c.position > after, items.c.position <= settled)
        .order_by(items.c.position)
        .limit(limit)
    )
    found = connection.execute(query).all()
    if not found:
        return NewItems(after, settled)
    source_ids = {row.source_id for row in found}
    read = subscribed_among(connection, source_ids)
    by_source = rules_for(connection, source_ids)
    wanted = [row.id for row in found if row.source_id in by_source]
    whole = select_items(longest_text=LONGEST_TEXT).where(items.c.id.in_(wanted)).order_by(items.c.position)
    until = found[-1].position if len(found) == limit else settled
    stored = tuple(map(stored_item, connection.execute(whole))) if wanted else ()
    return NewItems(after, until, tuple(row.id for row in found if row.source_id in read), stored, by_source)


def rules_for(connection: Connection, source_ids: Iterable[int]) -> dict[int, tuple[Rule, ...]]:
    """The active rules of the subscribers of sources, by source."""
    sql = (
        "SELECT s.source_id, r.id FROM rules r JOIN subscriptions s ON s.user_id = r.user_id"
        " WHERE r.is_active AND s.source_id {values}"
    )
    pairs = select_by(connection, sql, source_ids, "bigint")
    known: dict[int, Rule] = {}
    for numbers in batches({row[1] for row in pairs}):
        query = select(*_COLUMNS).where(rules.c.id.in_(numbers))
        known |= {row.id: _rule(row) for row in connection.execute(query)}
    found: dict[int, list[Rule]] = defaultdict(list)
    for source_id, rule_id in pairs:
        rule = known.get(rule_id)
        if rule is not None and (not rule.source_ids or source_id in rule.source_ids):
            found[source_id].append(rule)
    return {source_id: tuple(sorted(those, key=lambda each: each.id)) for source_id, those in found.items()}


def note_followed(
    connection: Connection,
    new: NewItems,
    matches: Sequence[Match],
    now: float,
    keys: Sequence[NewKeys] = (),
    copies: Sequence[tuple[int, int]] = (),
) -> bool:
    """Note the copies, do what the rules say and move the place.

    False: another worker has moved it, and nothing is done.
    """
    lock_setting(connection, FOLLOWED_KEY)
    if new.after >= 0 and followed_position(connection) != new.after:
        return False
    set_setting(connection, FOLLOWED_KEY, new.until, now)
    write_keys(connection, keys)
    join_stories(connection, copies)
    apply_rules(connection, matches, now)
    return True


def apply_rules(connection: Connection, matches: Sequence[Match], now: float) -> None:
    """Do what rules say with the items that they match."""
    by_rule: dict[int, list[Match]] = defaultdict(list)
    for match in matches:
        by_rule[match.rule.id].append(match)
    for rule_id in sorted(by_rule):
        rule, those = by_rule[rule_id][0].rule, by_rule[rule_id]
        _act(connection, rule, [each.item_id for each in those], now)
        _tell(connection, rule, [each for each in those if each.item_at >= now - NEWS_SECONDS], now)
        connection.execute(
            rules.update()
            .where(rules.c.id == rule_id)
            .values(matched=rules.c.matched + len(those), matched_at=now)
        )


def _act(connection: Connection, rule: Rule, item_ids: list[int], now: float) -> None:
    actions = rule.actions
    if actions.star:
        set_starred(connection, rule.user_id, item_ids, True, now)
    if actions.read_later:
        days = None if actions.read_later_days == "never" else float(actions.read_later_days)
        set_read_later(connection, rule.user_id, item_ids, days, now)
    if actions.tags:
        add_tags(connection, rule.user_id, item_ids, actions.tags, now)
    if actions.mute:
        mark_read(connection, rule.user_id, item_ids, True)


def _tell(connection: Connection, rule: Rule, matches: Sequence[Match], now: float) -> None:
    if rule.actions.notify:
        rows = [(rule.user_id, each.item_id, rule.name, now) for each in matches]
        columns = ("user_id", "item_id", "rule_name", "created_at")
        there = {
            row[0]
            for row in select_by(
                connection, "SELECT id FROM items WHERE id {values}", [row[1] for row in rows], "bigint"
            )
        }
        insert_rows(
            connection,
            notifications,
            columns,
            [row for row in rows if row[1] in there],
            "ON CONFLICT (user_id, item_id) DO NOTHING",
        )
    if rule.actions.target is not None:
        messages = [
            NewDelivery(
                rule.actions.target,
                f"rule-{rule.id}-{each.item_id}",
                each.title,
                each.url or "",
                data={"rule": rule.name, "item": {"id": each.item_id, "title": each.title, "url": each.url}},
            )
            for each in matches
        ]
        put_in_outbox(connection, messages, "item", now)


@dataclass(frozen=True, slots=True)
class Notification:
    """Something that a rule tells its owner."""

    id: int
    item_id: int
    title: str
    url: str | None
    rule_name: str
    created_at: float
    seen_at: float | None


def list_notifications(
    connection: Connection, user_id: int, *, before_id: int | None = None, limit: int
) -> list[Notification]:
    """What rules told a person, the newest first; one more than `limit` where there are more."""
    column = notifications.c
    query = (
        select(
            column.id,
            column.item_id,
            items.c.title,
            items.c.url,
            column.rule_name,
            column.created_at,
            column.seen_at,
        )
        .join_from(notifications, items, items.c.id == column.item_id)
        .where(column.user_id == user_id)
        .order_by(column.id.desc())
        .limit(limit + 1)
    )
    if before_id is not None:
        query = query.where(column.id < before_id)
    return [Notification(*row) for row in connection.execute(query)]


def note_notifications_seen(connection: Connection, user_id: int, up_to_id: int, now: float) -> int:
    """Mark a person's notifications up to this number as seen. Returns how many were not."""
    column = notifications.c
    return connection.execute(
        notifications.update()
        .where(column.user_id == user_id, column.id <= up_to_id, column.seen_at.is_(None))
        .values(seen_at=now)
    ).rowcount
