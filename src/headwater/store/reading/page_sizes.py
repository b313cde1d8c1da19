"""How many items fit on a page with their texts, so that long texts make short pages."""

from collections import Counter
from collections.abc import Sequence
from itertools import accumulate
from typing import Final

from sqlalchemy import Connection

from headwater.store.core.bulk import is_sqlite, select_by

PAGE_BYTES = 4_000_000
ALWAYS_FITTING: Final = 5


def count_fitting(connection: Connection, item_ids: Sequence[int]) -> int:
    """How many of these items, from the first, fit on one page with their texts and results."""
    if len(item_ids) <= ALWAYS_FITTING:
        return len(item_ids)
    length = "length" if is_sqlite(connection) else "octet_length"
    own = (
        f"SELECT id, coalesce({length}(summary), 0) + coalesce({length}(content), 0) + coalesce({length}(extra), 0)"
        " FROM items WHERE id {values}"
    )
    made = (
        f"SELECT item_id, sum(coalesce({length}(body), 0) + coalesce({length}(data), 0))"
        " FROM item_results WHERE item_id {values} AND replaced_at IS NULL GROUP BY item_id"
    )
    sizes: Counter[int] = Counter()
    for sql in (own, made):
        sizes.update({row[0]: int(row[1]) for row in select_by(connection, sql, item_ids, "bigint")})
    sums = accumulate(sizes[item_id] for item_id in item_ids)
    return max(ALWAYS_FITTING, sum(each <= PAGE_BYTES for each in sums))
