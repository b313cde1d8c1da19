"""Reading long lists page by page: each page begins after the last row of the one before it.

What comes in between moves nothing: no row is shown twice or left out because others were added or removed.
"""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import ColumnElement, Select, tuple_


def one_page(
    query: Select[Any],
    columns: Sequence[ColumnElement[Any]],
    *,
    after: Sequence[Any] | None,
    limit: int,
    newest_first: bool = False,
) -> Select[Any]:
    """`query` in the order of `columns` (the last of which is unique), from after `after`, `limit` rows and one more.

    The one more tells whether there is a next page.
    """
    if after is not None:
        place, start = tuple_(*columns), tuple_(*after)
        query = query.where(place < start if newest_first else place > start)
    order = [column.desc() if newest_first else column for column in columns]
    return query.order_by(*order).limit(limit + 1)
