"""Full-text search over items: SQLite's FTS5, PostgreSQL's tsvector, one idea of what a word is for both.

Words are made here, not by the databases: folded to plain lower case, and every Chinese, Japanese or Korean character
a word of its own, so that `新闻` is found inside a sentence. Items are put into the index in batches after they are
stored (`index_new_items`), by those who serve or search: collecting neither waits nor pays for it.
"""

import html
import re
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, Connection, Row, any_, column, func, select, text

from headwater.errors import InputError
from headwater.store.bulk import is_sqlite, select_by
from headwater.store.database import Store
from headwater.store.settings import get_setting, remove_setting, set_setting
from headwater.store.tables import items

BATCH = 500
MOST_CHARACTERS = 20_000  # of an item; a book's first pages tell what it is about
LATE_SECONDS = 600.0  # by which another worker's commit may come after one with a higher number
LATE_NUMBERS = 5_000  # and how much higher, where both have waited for a database that was away
MOST_PLACES = 16_000  # PostgreSQL counts no further
POSITION = "search.indexed"  # every item up to this number is in the index
# Of matches, beyond which it is quicker to look through the newest items for some of them than to sort them all.
MANY_MATCHES = 25_000
_MATCHING = "words @@ CAST(:words AS tsquery)"  # PostgreSQL's condition
COMMON = 0.01  # of all items: the share from which a page's worth is expected among the newest few thousand

_TAG = re.compile(r"<(?:script|style)\b.*?</(?:script|style)\s*>|<[^>]*>", re.DOTALL | re.IGNORECASE)
_CJK = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003134f"
_WORD = re.compile(rf"[{_CJK}]|[^\W_{_CJK}]+")
_TERM = re.compile(r'(-?)(?:"([^"]*)"?|(\S+))')


def words_of(text: str) -> list[str]:
    """The words of a text, as they are indexed and looked for."""
    plain = unicodedata.normalize("NFKD", text).casefold()
    if not plain.isascii():
        plain = "".join(letter for letter in plain if not unicodedata.combining(letter))
        plain = unicodedata.normalize("NFC", plain)  # what was taken apart and is no accent, such as Hangul
    return [word[:100] for word in _WORD.findall(plain)]


@dataclass(frozen=True, slots=True)
class Term:
    """Words that must follow each other, or must not; `prefix`: the last is the beginning of one."""

    words: tuple[str, ...]
    prefix: bool = False
    excluded: bool = False


def read_query(query: str) -> list[Term]:
    """What somebody looks for: words, "phrases", beginn*, -not. InputError when there is nothing to look for."""
    terms: list[Term] = []
    for minus, phrase, word in _TERM.findall(query):
        words = tuple(words_of(phrase or word))
        if words:
            terms.append(Term(words, prefix=word.endswith("*"), excluded=bool(minus)))
    if not any(not term.excluded for term in terms):
        raise InputError(
            'there is nothing to look for in {query}; write words, "a phrase", begin* or -not',
            query=query or "''",
        )
    return terms


def matches(connection: Connection, query: str, *, item_by_item: bool = False) -> ColumnElement[bool]:
    """The condition that an item matches a query.

    With `item_by_item`, something else narrows the items to a few thousand, which may be looked at one by one.
    """
    terms = sorted(read_query(query), key=lambda term: term.excluded)
    if is_sqlite(connection):
        words = _fts5(terms)
        if _has_many(connection, words):
            here = text(
                "SELECT 1 FROM item_words WHERE item_words.rowid = items.id AND item_words MATCH :words"
            )
            return here.bindparams(words=words).columns(column("found")).exists()
        found = text("SELECT rowid AS id FROM item_words WHERE item_words MATCH :words")
        return items.c.id.in_(found.bindparams(words=words).columns(column("id")).scalar_subquery())
    words = _tsquery(terms)
    every = text(f"SELECT item_id AS id FROM item_words WHERE {_MATCHING}")
    found_ids = every.bindparams(words=words).columns(column("id")).scalar_subquery()
    if item_by_item or (_is_common(connection, words) and _has_many(connection, words)):
        return items.c.id.in_(found_ids)
    # PostgreSQL takes every word it does not know for one that hundreds or thousands of items have, and every other for
    # as frequent now as ever. Left to itself it goes through the newest items for a page of them, which of a rare word,
    # or an old one, means through all. An array it gathers.
    return items.c.id == any_(func.array(found_ids))


def is_common(connection: Connection, query: str) -> bool:
    """Whether a page of matches is likely among the newest few thousand items; SQLite sees to it in `matches`."""
    return not is_sqlite(connection) and _is_common(connection, _tsquery(read_query(query)))


def _is_common(connection: Connection, words: str) -> bool:
    """Whether PostgreSQL expects many matches, going by what it knows of the words that occur most."""
    matching = _expected_rows(connection, f" WHERE {_MATCHING}", words=words)
    return matching > COMMON * _expected_rows(connection)


def _expected_rows(connection: Connection, condition: str = "", **values: str) -> float:
    plan = text("EXPLAIN (FORMAT JSON) SELECT item_id FROM item_words" + condition)
    rows: float = connection.execute(plan, values).scalar_one()[0]["Plan"]["Plan Rows"]
    return rows


def _has_many(connection: Connection, words: str) -> bool:
    """Whether so many items match that a list of them is long."""
    condition = "item_words MATCH :words" if is_sqlite(connection) else _MATCHING
    few = text(f"SELECT 1 AS found FROM item_words WHERE {condition} LIMIT :most").columns(column("found"))
    counted = select(func.count()).select_from(few.bindparams(words=words, most=MANY_MATCHES).subquery())
    return connection.execute(counted).scalar_one() == MANY_MATCHES


def _fts5(terms: list[Term]) -> str:
    """The wanted come first: FTS5's NOT takes something away from what stands before it."""
    parts: list[str] = []
    for term in terms:
        phrase = '"' + " ".join(term.words) + '"' + (" *" if term.prefix else "")
        parts.append(("NOT " if term.excluded else "AND " if parts else "") + phrase)
    return " ".join(parts)


def _tsquery(terms: list[Term]) -> str:
    parts = []
    for term in terms:
        quoted = [f"'{word}'" for word in term.words]
        if term.prefix:
            quoted[-1] += ":*"
        parts.append(("!" if term.excluded else "") + "(" + " <-> ".join(quoted) + ")")
    return " & ".join(parts)


def newest_item_id(connection: Connection) -> int:
    """The number of the item that was stored last."""
    return connection.execute(select(func.max(items.c.id))).scalar() or 0


def index_new_items(
    connection: Connection, now: float, limit: int = BATCH, after: int | None = None
) -> list[int]:
    """Put up to `limit` stored items that are not yet in the index into it. Answers their ids, in order.

    `after`: only those with a higher id, for one who has just indexed all others.
    """
    position = int(get_setting(connection, POSITION) or 0)
    found = connection.execute(
        text(_UNINDEXED[is_sqlite(connection)]), {"after": max(position, after or 0), "limit": limit}
    ).all()
    _write_words(connection, {row.id: _text(row) for row in found})
    if after is None and len(found) < limit:  # everything is in the index now
        settled = _last_settled(connection, now)
        if settled - position >= limit:
            set_setting(connection, POSITION, settled, now)
    return [row.id for row in found]


def begin_index_anew(connection: Connection) -> None:
    """What is remembered of the index is another database's: items came from there, their words did not."""
    remove_setting(connection, POSITION)


def _last_settled(connection: Connection, now: float) -> int:
    """The number up to which no item is going to appear any more: another worker may be just committing lower ones."""
    newest = (
        select(items.c.id)
        .where(items.c.first_seen_at < now - LATE_SECONDS)
        .order_by(items.c.first_seen_at.desc(), items.c.id.desc())
        .limit(1)
    )
    return (connection.execute(newest).scalar() or 0) - LATE_NUMBERS


def first_unindexed_position(connection: Connection) -> int | None:
    """The place in the order of storing of the first item that is not yet in the index."""
    position = int(get_setting(connection, POSITION) or 0)
    query = text(_UNINDEXED_POSITION[is_sqlite(connection)])
    found: int | None = connection.execute(query, {"after": position}).scalar()
    return found


def index_all(
    store: Store, now: float, batch: int = BATCH, on_batch: Callable[[int], None] = lambda count: None
) -> None:
    """Put everything that is stored into the index, a batch at a time, so that others can write in between."""
    after = None
    while True:
        with store.writing() as connection:
            found = index_new_items(connection, now, batch, after)
        on_batch(len(found))
        if len(found) < batch:
            if after is None:
                return
            after = None  # a last look from the beginning, for what was committed behind us meanwhile
        else:
            after = found[-1]


def index_again(connection: Connection, item_ids: list[int]) -> None:
    """Items whose content has changed are found by what they say now."""
    found = select_by(
        connection,
        "SELECT id, title, author, summary, content FROM items WHERE id {values}",
        item_ids,
        "bigint",
    )
    _write_words(connection, {row.id: _text(row) for row in found})


_UNINDEXED_ITEMS = (
    " FROM items LEFT JOIN item_words ON {key} = items.id WHERE items.id > :after AND {key} IS NULL"
)
_SELECT = (
    "SELECT items.id, items.title, items.author, items.summary, items.content"
    + _UNINDEXED_ITEMS
    + " ORDER BY items.id LIMIT :limit"
)
# With the plus SQLite looks at the few items after that one, not for the smallest position of all.
_SELECT_POSITION = "SELECT min(+items.position)" + _UNINDEXED_ITEMS
_KEYS = {True: "item_words.rowid", False: "item_words.item_id"}
_UNINDEXED = {sqlite: _SELECT.format(key=key) for sqlite, key in _KEYS.items()}
_UNINDEXED_POSITION = {sqlite: _SELECT_POSITION.format(key=key) for sqlite, key in _KEYS.items()}


def _text(row: Row[Any]) -> list[str]:
    whole = " ".join(part for part in (row.title, row.author, row.summary, row.content) if part)
    return words_of(html.unescape(_TAG.sub(" ", whole[: 2 * MOST_CHARACTERS]))[:MOST_CHARACTERS])


def _write_words(connection: Connection, texts: dict[int, list[str]]) -> None:
    if not texts:
        return
    if is_sqlite(connection):
        connection.exec_driver_sql(
            "DELETE FROM item_words WHERE rowid = ?", [(item_id,) for item_id in texts]
        )
        connection.exec_driver_sql(
            "INSERT INTO item_words (rowid, words) VALUES (?, ?)",
            [(item_id, " ".join(words)) for item_id, words in texts.items()],
        )
    else:
        connection.exec_driver_sql(
            "INSERT INTO item_words (item_id, words) SELECT id, words::tsvector"
            " FROM unnest(%s::bigint[], %s::text[]) AS new (id, words)"
            " ON CONFLICT (item_id) DO UPDATE SET words = excluded.words",
            (list(texts), [_tsvector(words) for words in texts.values()]),
        )


def _tsvector(words: list[str]) -> str:
    """The words with their places, in PostgreSQL's own notation: its parser never sees them."""
    places: dict[str, list[int]] = {}
    for place, word in enumerate(words[:MOST_PLACES], 1):
        places.setdefault(word, []).append(place)
    return " ".join(f"'{word}':{','.join(map(str, at[:255]))}" for word, at in places.items())
