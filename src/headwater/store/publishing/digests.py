"""Digests: what they gather and when, the issues that were made, and the lease under which the next one is made.

An issue, the messages with it, the place in the order of items and the next time are written in one transaction. So
after a crash an issue is either there with all that belongs to it, or it is made again from the same items.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import orjson
from sqlalchemy import Connection, Row, delete, func, select, update
from sqlalchemy.exc import IntegrityError

from headwater.errors import ConflictError, InputError, NotFoundError
from headwater.model import StoredItem
from headwater.store.core.bulk import insert_rows, is_sqlite, storable
from headwater.store.core.tables import digest_issues, digests, outlets
from headwater.store.publishing.outbox import NewDelivery, put_in_outbox
from headwater.store.publishing.targets import refuse_unknown_targets
from headwater.store.reading.cursors import Cursor, Gathered, When, gather_items
from headwater.store.reading.listing import read_items
from headwater.store.reading.positions import last_settled_position
from headwater.store.reading.selection import (
    EVERYTHING,
    Selection,
    conditions,
    from_json,
    refuse_unknown_sources,
    to_json,
)

MOST_ISSUES = 1_000  # of a digest that are kept
_NAME = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?")


@dataclass(frozen=True, slots=True)
class Digest:
    """What is gathered from new items, and when."""

    name: str
    title: str
    schedule: str
    zone: str = "UTC"
    selection: Selection = EVERYTHING
    when: When = "stored"
    config: Mapping[str, Any] = field(default_factory=dict, hash=False)
    targets: tuple[str, ...] = ()
    is_enabled: bool = True
    id: int = 0
    position: int = 0
    due_at: float = 0.0
    claim_at: float = 0.0
    lease_no: int = 0
    attempts: int = 0
    error_message: str | None = None
    created_at: float = 0.0
    updated_at: float = 0.0


@dataclass(frozen=True, slots=True)
class NewIssue:
    """An issue in one language, ready to be stored."""

    title: str
    text: str
    html: str
    item_ids: tuple[int, ...]
    omitted: int = 0
    language: str = ""
    data: Mapping[str, Any] = field(default_factory=dict, hash=False)
    error_message: str | None = None


@dataclass(frozen=True, slots=True)
class Issue:
    """One edition of a digest."""

    id: int
    digest: str
    due_at: float
    language: str
    revision: int
    title: str
    text: str
    html: str
    item_ids: tuple[int, ...]
    omitted: int
    data: dict[str, Any] = field(hash=False)
    error_message: str | None
    made_at: float
    sends: int

    @property
    def item_count(self) -> int:
        return len(self.item_ids)


def add_digest(connection: Connection, digest: Digest, now: float, *, from_now: bool = True) -> Digest:
    """Store a new digest; its first issue is about what comes from now on, or about all there is."""
    _check(connection, digest)
    position = last_settled_position(connection) if from_now else 0
    digest = replace(
        digest, position=position, claim_at=digest.due_at, created_at=now, updated_at=now, lease_no=0
    )
    try:
        with connection.begin_nested():
            connection.execute(digests.insert().values(**_row(digest), position=position, created_at=now))
    except IntegrityError:
        raise ConflictError(
            "there is a digest {name} already; choose another name", name=digest.name
        ) from None
    return get_digest(connection, digest.name)


def change_digest(connection: Connection, name: str, now: float, **changes: Any) -> Digest:
    """Change what is given. What was gathered so far stays; the lease of one being made ends."""
    digest = replace(get_digest(connection, name), **changes, updated_at=now)
    _check(connection, digest)
    if "due_at" in changes:
        digest = replace(digest, claim_at=digest.due_at, attempts=0, error_message=None)
    digest = replace(digest, lease_no=digest.lease_no + 1)
    connection.execute(digests.update().where(digests.c.name == name).values(**_row(digest)))
    return get_digest(connection, name)


def remove_digest(connection: Connection, name: str) -> None:
    """Remove a digest with its issues."""
    get_digest(connection, name)
    shown = connection.execute(select(outlets.c.name).where(outlets.c.digest == name).limit(1)).scalar()
    if shown is not None:
        raise ConflictError(
            "the outlet {outlet} publishes the digest {name}; remove the outlet first",
            outlet=shown,
            name=name,
        )
    connection.execute(digests.delete().where(digests.c.name == name))


def get_digest(connection: Connection, name: str) -> Digest:
    row = connection.execute(select(digests).where(digests.c.name == name)).first()
    if row is None:
        raise NotFoundError(
            "there is no digest {name}", hint="`headwater digest list` shows them all", name=name
        )
    return _digest(row)


def list_digests(connection: Connection) -> list[Digest]:
    return [_digest(row) for row in connection.execute(select(digests).order_by(digests.c.name))]


def claim_digest(connection: Connection, *, now: float, lease_until: float) -> Digest | None:
    """Take a digest whose next issue is due, under a lease."""
    column = digests.c
    query = (
        select(digests)
        .where(column.is_enabled, column.claim_at <= now)
        .order_by(column.claim_at, column.id)
        .limit(1)
    )
    if not is_sqlite(connection):
        query = query.with_for_update(skip_locked=True)
    row = connection.execute(query).first()
    if row is None:
        return None
    lease_no, attempts = row.lease_no + 1, row.attempts + 1
    connection.execute(
        update(digests)
        .where(column.id == row.id)
        .values(lease_no=lease_no, attempts=attempts, claim_at=lease_until)
    )
    return replace(_digest(row), lease_no=lease_no, attempts=attempts)


def next_digest_at(connection: Connection) -> float | None:
    """When the first digest is to be made."""
    query = select(func.min(digests.c.claim_at)).where(digests.c.is_enabled)
    found: float | None = connection.execute(query).scalar()
    return found


def make_due(connection: Connection, name: str, now: float) -> Digest:
    """Have the next issue made now, about what is new until now."""
    get_digest(connection, name)
    connection.execute(
        update(digests)
        .where(digests.c.name == name)
        .values(due_at=now, claim_at=now, attempts=0, error_message=None)
    )
    return get_digest(connection, name)


def gather(
    connection: Connection, digest: Digest, *, limit: int, by_score: bool, longest_text: int
) -> tuple[Gathered, list[StoredItem]]:
    """What the next issue is about, with texts up to so many characters."""
    cursor = Cursor(digest.name, digest.position, digest.when, digest.selection, digest.created_at, None)
    gathered = gather_items(connection, cursor, limit=limit, by_score=by_score)
    return gathered, read_items(connection, gathered.item_ids, longest_text=longest_text)


def settle_digest(
    connection: Connection,
    digest: Digest,
    issues: Sequence[NewIssue],
    messages: Iterable[NewDelivery],
    *,
    position: int,
    next_at: float,
    now: float,
) -> bool:
    """Store an issue with its messages, and when the next is due. False: the lease has passed on; nothing is stored."""
    column = digests.c
    held = connection.execute(
        update(digests)
        .where(column.id == digest.id, column.lease_no == digest.lease_no)
        .values(position=position, due_at=next_at, claim_at=next_at, attempts=0, error_message=None)
    ).rowcount
    if not held:
        return False
    insert_rows(
        connection,
        digest_issues,
        ("digest_id", "due_at", "made_at", "language", *_ISSUE),
        [(digest.id, digest.due_at, now, each.language, *_issue_values(each)) for each in issues],
        "ON CONFLICT (digest_id, due_at, language) DO NOTHING",
    )
    put_in_outbox(connection, messages, "digest", now)
    _forget_oldest(connection, digest.id)
    return True


def put_off_digest(connection: Connection, digest: Digest, error: str, claim_at: float) -> None:
    """An attempt has failed: the same issue is made again then."""
    column = digests.c
    connection.execute(
        update(digests)
        .where(column.id == digest.id, column.lease_no == digest.lease_no)
        .values(claim_at=claim_at, error_message=storable(error))
    )


def replace_issue(connection: Connection, issue: Issue, made: NewIssue, now: float) -> Issue:
    """Store an issue that was made again."""
    values = dict(zip(_ISSUE, _issue_values(made), strict=True))
    connection.execute(
        update(digest_issues)
        .where(digest_issues.c.id == issue.id)
        .values(**values, revision=digest_issues.c.revision + 1, made_at=now)
    )
    return get_issue(connection, issue.id)


def note_sent_again(connection: Connection, issue_id: int) -> int:
    """Count that an issue is sent again by hand; how often it was."""
    connection.execute(
        update(digest_issues).where(digest_issues.c.id == issue_id).values(sends=digest_issues.c.sends + 1)
    )
    return get_issue(connection, issue_id).sends


def list_issues(
    connection: Connection, name: str | None = None, *, before_id: int | None = None, limit: int = 50
) -> list[Issue]:
    """Issues, newest first."""
    query = _query().order_by(digest_issues.c.id.desc()).limit(limit)
    if name is not None:
        query = query.where(digest_issues.c.digest_id == get_digest(connection, name).id)
    if before_id is not None:
        query = query.where(digest_issues.c.id < before_id)
    return [_issue(row) for row in connection.execute(query)]


def read_issues(connection: Connection, issue_ids: Sequence[int]) -> list[Issue]:
    """These issues, in this order."""
    found = {
        row.id: _issue(row) for row in connection.execute(_query().where(digest_issues.c.id.in_(issue_ids)))
    }
    return [found[each] for each in issue_ids if each in found]


def get_issue(connection: Connection, issue_id: int) -> Issue:
    row = connection.execute(_query().where(digest_issues.c.id == issue_id)).first()
    if row is None:
        raise NotFoundError(
            "there is no issue {id} of a digest",
            hint="`headwater digest issues` shows the newest",
            id=issue_id,
        )
    return _issue(row)


def _check(connection: Connection, digest: Digest) -> None:
    if not _NAME.fullmatch(digest.name):
        raise InputError(
            "{name} cannot be a digest's name; use lower-case letters, digits and hyphens, 63 at most",
            name=digest.name or "''",
        )
    conditions(connection, digest.selection)  # complains of a search for nothing
    refuse_unknown_sources(connection, digest.selection)
    refuse_unknown_targets(connection, digest.targets)


def _forget_oldest(connection: Connection, digest_id: int) -> None:
    column = digest_issues.c
    oldest = (
        select(column.id)
        .where(column.digest_id == digest_id)
        .order_by(column.due_at.desc(), column.language)
        .offset(MOST_ISSUES)
        .limit(MOST_ISSUES)
    )
    connection.execute(delete(digest_issues).where(column.id.in_(oldest)))


_ISSUE = ("title", "text", "html", "item_ids", "omitted", "data", "error_message")


def _issue_values(issue: NewIssue) -> tuple[Any, ...]:
    return (
        storable(issue.title),
        storable(issue.text),
        storable(issue.html),
        orjson.dumps(issue.item_ids).decode(),
        issue.omitted,
        storable(orjson.dumps(issue.data).decode()),
        storable(issue.error_message),
    )


def _query() -> Any:
    return select(digest_issues, digests.c.name.label("digest_name")).join_from(digest_issues, digests)


def _row(digest: Digest) -> dict[str, Any]:
    return {
        "name": digest.name,
        "title": storable(digest.title),
        "schedule": digest.schedule,
        "zone": digest.zone,
        "selection": orjson.dumps(to_json(digest.selection)).decode(),
        "read_when": digest.when,
        "config": storable(orjson.dumps(dict(digest.config)).decode()),
        "targets": orjson.dumps(digest.targets).decode(),
        "is_enabled": digest.is_enabled,
        "due_at": digest.due_at,
        "claim_at": digest.claim_at,
        "lease_no": digest.lease_no,
        "attempts": digest.attempts,
        "error_message": digest.error_message,
        "updated_at": digest.updated_at,
    }


def _digest(row: Row[Any]) -> Digest:
    return Digest(
        name=row.name,
        title=row.title,
        schedule=row.schedule,
        zone=row.zone,
        selection=from_json(orjson.loads(row.selection)),
        when=row.read_when,
        config=orjson.loads(row.config),
        targets=tuple(orjson.loads(row.targets)),
        is_enabled=bool(row.is_enabled),
        id=row.id,
        position=row.position,
        due_at=row.due_at,
        claim_at=row.claim_at,
        lease_no=row.lease_no,
        attempts=row.attempts,
        error_message=row.error_message,
        created_at=row.created_at,
        updated_at=row.updated_at,
    )


def _issue(row: Row[Any]) -> Issue:
    return Issue(
        id=row.id,
        digest=row.digest_name,
        due_at=row.due_at,
        language=row.language,
        revision=row.revision,
        title=row.title,
        text=row.text,
        html=row.html,
        item_ids=tuple(orjson.loads(row.item_ids)),
        omitted=row.omitted,
        data=orjson.loads(row.data),
        error_message=row.error_message,
        made_at=row.made_at,
        sends=row.sends,
    )
