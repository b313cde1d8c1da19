"""Results: what pipelines have made of items. An item has one current result of each kind and name.

A newer result replaces the current one, which stays in the history for a while. A newer version of the item replaces
nothing: what was made of the old version stays until a run makes it again. Results are deleted with their item.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import orjson
from sqlalchemy import Connection, Row, select

from headwater.markup import LONGEST_TEXT
from headwater.model import Result, StoredResult, read_tags
from headwater.store.core.bulk import insert_rows, is_sqlite, run_by, select_by, sent_together, storable
from headwater.store.core.tables import item_results, items_to_index, result_tags
from headwater.store.reading.media import make_media_secret, read_media, use_media

MOST_REPLACED = 5  # earlier results of one kind and name that are kept
FOUND_BY_SEARCH = frozenset({"full_text", "summary", "translation", "transcript", "tags", "analysis"})


@dataclass(frozen=True, slots=True)
class NewResult:
    """A result and who made it."""

    item_id: int
    item_version: int
    result: Result
    made_at: float
    run_id: int | None = None
    template_id: int | None = None
    step_index: int | None = None
    step_type: str | None = None

    def as_stored(self) -> StoredResult:
        """The same result as it will be read, before it has a number."""
        return StoredResult(
            id=0,
            item_id=self.item_id,
            item_version=self.item_version,
            result=self.result,
            made_at=self.made_at,
            replaced_at=None,
            run_id=self.run_id,
            template_id=self.template_id,
            step_index=self.step_index,
            step_type=self.step_type,
        )


_COLUMNS = (
    "item_id",
    "item_version",
    "kind",
    "name",
    "format",
    "language",
    "body",
    "data",
    "value",
    "run_id",
    "template_id",
    "step_index",
    "step_type",
    "made_at",
    "replaced_at",
)
Key = tuple[int, str, str]  # item, kind, name


def write_results(connection: Connection, made: Sequence[NewResult]) -> None:
    """Make these the current results of their items; of several with one key, the last.

    The caller holds the items' rows, where transactions can overlap.
    """
    if not made:
        return
    last: dict[Key, NewResult] = {_key(each): each for each in made}
    replaced = _replace(connection, last)
    tagged = [each for each in last.values() if each.result.kind == "tags"]
    media = [each for each in last.values() if each.result.kind == "media"]
    with sent_together(connection):
        insert_rows(
            connection,
            item_results,
            _COLUMNS,
            [_row(each, each.made_at if last[_key(each)] is not each else None) for each in made],
        )
        if replaced:
            _forget_oldest(connection, {item_id for item_id, _, _ in last})
        _write_tags(connection, tagged)
        index_again(
            connection, {each.item_id for each in last.values() if each.result.kind in FOUND_BY_SEARCH}
        )
    if media:
        make_media_secret(connection, media[0].made_at)
        used = [(each.item_id, read_media(each.result.data)) for each in media]
        use_media(connection, used, media[0].made_at)


def index_again(connection: Connection, item_ids: Iterable[int]) -> None:
    """Have the words of these items indexed again, by the next indexer."""
    insert_rows(connection, items_to_index, ("item_id",), [(item_id,) for item_id in sorted(item_ids)])


def _key(made: NewResult) -> Key:
    return made.item_id, made.result.kind, made.result.name


def _replace(connection: Connection, last: Mapping[Key, NewResult]) -> int:
    """Mark what is current now as replaced; how many there were."""
    values = [(each.made_at, *key) for key, each in last.items()]
    if is_sqlite(connection):
        return connection.exec_driver_sql(
            "UPDATE item_results SET replaced_at = ?"
            " WHERE item_id = ? AND kind = ? AND name = ? AND replaced_at IS NULL",
            values,
        ).rowcount
    return connection.exec_driver_sql(
        "UPDATE item_results AS r SET replaced_at = new.at"
        " FROM unnest(%s::float8[], %s::bigint[], %s::text[], %s::text[]) AS new (at, item_id, kind, name)"
        " WHERE r.item_id = new.item_id AND r.kind = new.kind AND r.name = new.name AND r.replaced_at IS NULL",
        tuple(map(list, zip(*values, strict=True))),
    ).rowcount


def _row(made: NewResult, replaced_at: float | None) -> tuple[Any, ...]:
    result = made.result
    return (
        made.item_id,
        made.item_version,
        result.kind,
        storable(result.name),
        result.format,
        storable(result.language),
        None if result.body is None else storable(result.body[:LONGEST_TEXT]),
        None if result.data is None else storable(orjson.dumps(result.data).decode()),
        float(result.data["score"]) if result.kind == "score" else None,
        made.run_id,
        made.template_id,
        made.step_index,
        made.step_type,
        made.made_at,
        replaced_at,
    )


def _forget_oldest(connection: Connection, item_ids: Iterable[int]) -> None:
    run_by(
        connection,
        "DELETE FROM item_results WHERE id IN (SELECT id FROM (SELECT id, row_number() OVER"
        " (PARTITION BY item_id, kind, name ORDER BY id DESC) AS place FROM item_results"
        f" WHERE item_id {{values}} AND replaced_at IS NOT NULL) AS ranked WHERE place > {MOST_REPLACED})",
        sorted(item_ids),
        "bigint",
    )


def _write_tags(connection: Connection, made: Sequence[NewResult]) -> None:
    if not made:
        return
    item_ids = sorted(each.item_id for each in made)
    run_by(connection, "DELETE FROM result_tags WHERE item_id {values}", item_ids, "bigint")
    rows = [(storable(tag), each.item_id) for each in made for tag in read_tags(each.result.data)]
    insert_rows(connection, result_tags, ("tag", "item_id"), rows, "ON CONFLICT (tag, item_id) DO NOTHING")


def results_of(connection: Connection, item_ids: Iterable[int]) -> dict[int, dict[str, StoredResult]]:
    """The current results of each of these items, by key."""
    wanted = list(item_ids)
    found: dict[int, dict[str, StoredResult]] = {item_id: {} for item_id in wanted}
    rows = select_by(
        connection,
        f"SELECT {', '.join(column.name for column in item_results.c)} FROM item_results"
        " WHERE item_id {values} AND replaced_at IS NULL ORDER BY item_id, id",
        wanted,
        "bigint",
    )
    for row in rows:
        stored = _stored(row)
        found[stored.item_id][stored.result.key] = stored
    return found


def result_history(connection: Connection, item_id: int) -> list[StoredResult]:
    """The results of an item that were replaced, newest first."""
    column = item_results.c
    query = select(item_results).where(column.item_id == item_id, column.replaced_at.is_not(None))
    return [_stored(row) for row in connection.execute(query.order_by(column.id.desc()))]


@dataclass(frozen=True, slots=True)
class Traits:
    """What lists show of an item's results: which there are, and what is short."""

    result_keys: tuple[str, ...] = ()
    pipeline_score: float | None = None
    tags: tuple[str, ...] = ()


NO_TRAITS = Traits()


def traits_of(connection: Connection, item_ids: Iterable[int]) -> dict[int, Traits]:
    """What results items have, without their bodies. An item without any is left out."""
    rows = select_by(
        connection,
        "SELECT item_id, kind, name, value, CASE WHEN kind = 'tags' THEN data END FROM item_results"
        " WHERE item_id {values} AND replaced_at IS NULL ORDER BY item_id, id",
        item_ids,
        "bigint",
    )
    by_item: dict[int, list[Any]] = {}
    for item_id, *rest in rows:
        by_item.setdefault(item_id, []).append(rest)
    return {
        item_id: Traits(
            tuple(f"{kind}:{name}" if name else kind for kind, name, _, _ in its_rows),
            next((value for _, _, value, _ in its_rows if value is not None), None),
            tuple(tag for *_, data in its_rows if data for tag in read_tags(orjson.loads(data))),
        )
        for item_id, its_rows in by_item.items()
    }


def _stored(row: Row[Any]) -> StoredResult:
    return StoredResult(
        id=row.id,
        item_id=row.item_id,
        item_version=row.item_version,
        result=Result(
            kind=row.kind,
            name=row.name,
            body=row.body,
            format=row.format,
            language=row.language,
            data=None if row.data is None else orjson.loads(row.data),
        ),
        made_at=row.made_at,
        replaced_at=row.replaced_at,
        run_id=row.run_id,
        template_id=row.template_id,
        step_index=row.step_index,
        step_type=row.step_type,
    )
