"""Full-text search over items: SQLite's FTS5, PostgreSQL's tsvector, one idea of what a word is for both.

Words are made here, not by the databases: folded to plain lower case, and every Chinese, Japanese or Korean character
a separate word, so that `新闻` is found inside a sentence. Items are put into the index in batches after they are
stored (`index_new_items`), by processes that serve or search: collecting neither waits nor pays for it.
"""

import asyncio
import re
import unicodedata
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import orjson
from sqlalchemy import ColumnElement, Connection, Row, any_, column, func, not_, select, text

from headwater.errors import InputError
from headwater.markup import visible_text
from headwater.model import Item, Json
from headwater.store.core.bulk import is_sqlite, run_by, select_by
from headwater.store.core.database import Store
from headwater.store.core.settings import get_setting, remove_setting, set_setting
from headwater.store.core.tables import items, items_to_index
from headwater.store.reading.results import FOUND_BY_SEARCH

BATCH = 500
MOST_CHARACTERS = 20_000  # of an item; a book's first pages tell what it is about
LATE_SECONDS = 600.0  # by which another worker's commit may come after one with a higher number
LATE_NUMBERS = 5_000  # and how much higher, where both have waited for a database that was away
NORMALISED_CHARACTERS = (
    128  # at once: accents are sorted, which takes the square of how many follow each other
)
LONGEST_QUERY = 10_000  # characters
MOST_TERMS = 100  # of a query
MOST_PLACES = 16_000  # PostgreSQL counts no further than the last place
LAST_PLACE = 16_383
RESULT_CHARACTERS = 60_000  # of what pipelines made of an item, all results together
_MOST_READ = 2 * MOST_CHARACTERS  # tags and references are longer than what they say
POSITION = "search.indexed"  # every item up to this number is in the index
# Of matches, beyond which it is quicker to look through the newest items for some of them than to sort them all.
MANY_MATCHES = 25_000
_MATCHING = "words @@ CAST(:words AS tsquery)"  # PostgreSQL's condition
COMMON = 0.01  # of all items: the share from which a page's worth is expected among the newest few thousand

_CJK = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003134f"
_WORD = re.compile(rf"[{_CJK}]|[^\W_{_CJK}]+")
_TERM = re.compile(r'(-?)(?:"([^"]*)"?|(\S+))')


Words = dict[int, tuple[int, list[str]]]  # of items, with the version that says them


def words_of(text: str) -> list[str]:
    """The words of a text, as they are indexed and looked for."""
    if text.isascii():
        return [word[:100] for word in _WORD.findall(text.casefold())]
    parts = (text[at : at + NORMALISED_CHARACTERS] for at in range(0, len(text), NORMALISED_CHARACTERS))
    plain = "".join(unicodedata.normalize("NFKD", part) for part in parts).casefold()
    plain = "".join(letter for letter in plain if not unicodedata.combining(letter))
    plain = unicodedata.normalize("NFC", plain)  # what was taken apart and is not an accent, such as Hangul
    return [word[:100] for word in _WORD.findall(plain)]


def words_of_item(item: Item | Row[Any], results: Sequence[str] = ()) -> list[str]:
    """The words by which an item is found; `results`: the texts that pipelines made of it."""
    extras = item.extras if isinstance(item, Item) else orjson.loads(item.extra)
    said = " ".join(_texts_of(extras)) if extras else None
    parts = (item.title, item.author, said, item.summary, item.content)
    whole = " ".join(part[:_MOST_READ] for part in parts if part)
    words = words_of(visible_text(whole[:_MOST_READ], MOST_CHARACTERS))
    left = RESULT_CHARACTERS
    for result in results:
        made = visible_text(result[: 2 * left], left)
        words += words_of(made)
        left -= len(made)
    return words


# Of what an item says beyond its text, what people look for: the keys of lists of objects, and the names in them.
_SAID = (("persons", "name"), ("credits", "name"), ("chapters", "title"), ("locations", "name"))


def _texts_of(extras: Json) -> Iterator[str]:
    yield from (word for word in extras.get("keywords", ()) if isinstance(word, str))
    for key, name in _SAID:
        for each in extras.get(key, ()):
            if isinstance(each, dict) and isinstance(each.get(name), str):
                yield each[name]


@dataclass(frozen=True, slots=True)
class Term:
    """Words that must follow each other, or must not; `prefix`: the last is the beginning of one."""

    words: tuple[str, ...]
    prefix: bool = False
    excluded: bool = False


def read_query(query: str) -> list[Term]:
    """What a search looks for: words, "phrases", beginn*, -not. InputError when there is nothing, or too much.

    Exclusions alone look for every item without those words.
    """
    if len(query) > LONGEST_QUERY:
        raise InputError("a search has at most {limit} characters", limit=LONGEST_QUERY)
    terms: list[Term] = []
    for minus, phrase, word in _TERM.findall(query):
        words = tuple(words_of(phrase or word))
        if words:
            terms.append(Term(words, prefix=word.endswith("*"), excluded=bool(minus)))
    if len(terms) > MOST_TERMS:
        raise InputError("a search has at most {limit} words and phrases", limit=MOST_TERMS)
    if not terms:
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
    if terms[0].excluded:
        return not_(_matches(connection, terms, item_by_item=item_by_item))
    return _matches(connection, terms, item_by_item=item_by_item)


def _matches(connection: Connection, terms: list[Term], *, item_by_item: bool) -> ColumnElement[bool]:
    """The same for terms of which the first are wanted; of those that are all excluded, that any occurs."""
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


def finds_few(connection: Connection, query: str) -> bool:
    """Whether so few items match that they are best read first, by number; PostgreSQL sees to it in `matches`."""
    terms = read_query(query)
    if not is_sqlite(connection) or all(term.excluded for term in terms):
        return False
    return not _has_many(connection, _fts5(sorted(terms, key=lambda term: term.excluded)))


def is_common(connection: Connection, query: str) -> bool:
    """Whether a page of matches is likely among the newest few thousand items; SQLite sees to it in `matches`."""
    if is_sqlite(connection):
        return False
    terms = read_query(query)
    return all(term.excluded for term in terms) or _is_common(connection, _tsquery(terms))


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
    """The wanted come first: FTS5's NOT takes something away from what stands before it. Where none is wanted, any."""
    phrases = ['"' + " ".join(term.words) + '"' + (" *" if term.prefix else "") for term in terms]
    if terms[0].excluded:
        return " OR ".join(phrases)
    joined = ["NOT " if term.excluded else "AND " for term in terms]
    return " ".join(word + phrase for word, phrase in zip(["", *joined[1:]], phrases, strict=True))


def _tsquery(terms: list[Term]) -> str:
    """As above: where none is wanted, any."""
    excluded = "" if all(term.excluded for term in terms) else "!"
    parts = []
    for term in terms:
        quoted = [f"'{word}'" for word in term.words]
        if term.prefix:
            quoted[-1] += ":*"
        parts.append((excluded if term.excluded else "") + "(" + " <-> ".join(quoted) + ")")
    return (" & " if excluded else " | ").join(parts)


def newest_item_id(connection: Connection) -> int:
    """The number of the item that was stored last."""
    return connection.execute(select(func.max(items.c.id))).scalar() or 0


async def index_new_items(
    store: Store, now: float, limit: int = BATCH, after: int | None = None
) -> list[int]:
    """Put up to `limit` stored items that are not yet in the index into it. Answers their ids, in order.

    Items whose results have changed are indexed again, up to `limit` as well. `after`: of new items only those with a
    higher id, for a caller that has just indexed all others. Words are made before the transaction that writes them:
    how long that takes depends on the items.
    """
    if await store.read(has_outdated):
        changed = await store.read(_read_outdated, limit)
        words = await asyncio.to_thread(_words_of_rows, changed.rows, changed.results)
        await store.write(_write_outdated, changed, words)
    found, results = await store.read(_unindexed, limit, after)
    words = await asyncio.to_thread(_words_of_rows, found, results) if found else {}
    await store.write(_write_index, words, now, limit, after)
    return list(words)


def index_batch(store: Store, now: float, limit: int = BATCH, after: int | None = None) -> list[int]:
    """What `index_new_items` does, for a caller that waits for it."""
    with store.reading() as connection:
        changed = _read_outdated(connection, limit)
        found, results = _unindexed(connection, limit, after)
    words_again = _words_of_rows(changed.rows, changed.results)
    words = _words_of_rows(found, results)
    with store.writing() as connection:
        _write_outdated(connection, changed, words_again)
        _write_index(connection, words, now, limit, after)
    return list(words)


@dataclass(frozen=True, slots=True)
class Outdated:
    """Items to be indexed again, and the entries that say so."""

    entries: tuple[int, ...]
    rows: Sequence[Row[Any]]
    results: Mapping[int, list[str]]


def has_outdated(connection: Connection) -> bool:
    """Whether results have changed that are not yet in the index."""
    return connection.execute(select(items_to_index.c.id).limit(1)).first() is not None


def _read_outdated(connection: Connection, limit: int) -> Outdated:
    wanted = connection.execute(select(items_to_index).order_by(items_to_index.c.id).limit(limit)).all()
    item_ids = sorted({row.item_id for row in wanted})
    rows = select_by(connection, _OUTDATED, item_ids, "bigint", _MOST_READ, _MOST_READ)
    return Outdated(tuple(row.id for row in wanted), rows, _result_texts(connection, item_ids))


def _write_outdated(connection: Connection, changed: Outdated, words: Words) -> None:
    write_words(connection, _still_true(connection, words))
    # What was added meanwhile is another entry: it is dealt with the next time.
    run_by(connection, "DELETE FROM items_to_index WHERE id {values}", changed.entries, "bigint")


def _unindexed(
    connection: Connection, limit: int, after: int | None
) -> tuple[Sequence[Row[Any]], Mapping[int, list[str]]]:
    """The first items without words, and the texts of their results."""
    position = int(get_setting(connection, POSITION) or 0)
    values = {"after": max(position, after or 0), "limit": limit, "most": _MOST_READ}
    rows = connection.execute(text(_UNINDEXED[is_sqlite(connection)]), values).all()
    return rows, _result_texts(connection, [row.id for row in rows])


def _result_texts(connection: Connection, item_ids: Sequence[int]) -> dict[int, list[str]]:
    """By item, what its current results say: bodies, translated titles, tags, what a model answered."""
    found: dict[int, list[str]] = {}
    kinds = ", ".join(f"'{kind}'" for kind in sorted(FOUND_BY_SEARCH))
    rows = select_by(
        connection,
        f"SELECT item_id, substr(body, 1, {2 * RESULT_CHARACTERS}),"
        " CASE WHEN kind <> 'transcript' THEN data END FROM item_results"
        f" WHERE item_id {{values}} AND replaced_at IS NULL AND kind IN ({kinds}) ORDER BY item_id, id",
        item_ids,
        "bigint",
    )
    for item_id, body, data in rows:
        texts = found.setdefault(item_id, [])
        if body:
            texts.append(body)
        if data:
            texts.append(" ".join(_strings_in(orjson.loads(data))))
    return found


def _strings_in(value: Any) -> Iterator[str]:
    """All texts in a JSON value, in order."""
    waiting = [value]
    while waiting:
        each = waiting.pop()
        if isinstance(each, str):
            yield each
        elif isinstance(each, dict | list):
            waiting += reversed(list(each.values()) if isinstance(each, dict) else each)


def _words_of_rows(rows: Sequence[Row[Any]], results: Mapping[int, list[str]]) -> Words:
    return {row.id: (row.version, words_of_item(row, results.get(row.id, ()))) for row in rows}


def _write_index(connection: Connection, words: Words, now: float, limit: int, after: int | None) -> None:
    write_words(connection, _still_true(connection, words))
    if after is None and len(words) < limit:  # everything is in the index now
        position = int(get_setting(connection, POSITION) or 0)
        settled = _last_settled(connection, now)
        if settled - position >= limit:
            set_setting(connection, POSITION, settled, now)


def _still_true(connection: Connection, words: Words) -> dict[int, list[str]]:
    """Without items that were removed or changed in the meantime: the change has indexed them."""
    if not words:
        return {}
    query = select(items.c.id, items.c.version).where(items.c.id.in_(list(words)))
    versions = dict(connection.execute(query).all())
    return {id: said for id, (version, said) in words.items() if versions.get(id) == version}


def restart_index(connection: Connection) -> None:
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


def first_outdated_position(connection: Connection) -> int | None:
    """The first place, in the order in which pipelines finished items, of one whose results are not yet indexed."""
    position = items.c.processed_position
    query = (
        select(func.min(position))
        .join_from(items_to_index, items, items.c.id == items_to_index.c.item_id)
        .where(position > 0)
    )
    found: int | None = connection.execute(query).scalar()
    return found


def index_all(
    store: Store, now: float, batch: int = BATCH, on_batch: Callable[[int], None] = lambda count: None
) -> None:
    """Put everything that is stored into the index, a batch at a time, so that others can write in between."""
    after = None
    while True:
        found = index_batch(store, now, batch, after)
        on_batch(len(found))
        if len(found) < batch:
            if after is None:
                _index_outdated(store, batch)
                return
            after = None  # a last look from the beginning, for what was committed behind us meanwhile
        else:
            after = found[-1]


def _index_outdated(store: Store, batch: int) -> None:
    while True:
        with store.reading() as connection:
            changed = _read_outdated(connection, batch)
        if not changed.entries:
            return
        words = _words_of_rows(changed.rows, changed.results)
        with store.writing() as connection:
            _write_outdated(connection, changed, words)


_UNINDEXED_ITEMS = (
    " FROM items LEFT JOIN item_words ON {key} = items.id WHERE items.id > :after AND {key} IS NULL"
)
_SELECT = (
    "SELECT items.id, items.version, items.title, items.author, substr(items.summary, 1, :most) AS summary,"
    " substr(items.content, 1, :most) AS content, items.extra"
    + _UNINDEXED_ITEMS
    + " ORDER BY items.id LIMIT :limit"
)
# With the plus SQLite looks at the few items after that one, not for the smallest position of all.
_SELECT_POSITION = "SELECT min(+items.position)" + _UNINDEXED_ITEMS
_OUTDATED = (
    "SELECT id, version, title, author, substr(summary, 1, ?) AS summary, substr(content, 1, ?) AS content, extra"
    " FROM items WHERE id {values}"
)
_KEYS = {True: "item_words.rowid", False: "item_words.item_id"}
_UNINDEXED = {sqlite: _SELECT.format(key=key) for sqlite, key in _KEYS.items()}
_UNINDEXED_POSITION = {sqlite: _SELECT_POSITION.format(key=key) for sqlite, key in _KEYS.items()}


def write_words(connection: Connection, texts: Mapping[int, list[str]]) -> None:
    """Let items be found by these words, whatever they were found by before."""
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
    for word in words[MOST_PLACES:]:  # found as a word, but not in a phrase
        places.setdefault(word, [LAST_PLACE])
    return " ".join(f"'{word}':{','.join(map(str, at[:255]))}" for word, at in places.items())
