"""What a collector says to its database does not come in as many forms as there are numbers of items and sources.

SQLite's driver keeps every statement it has prepared, for each connection: forms without end are memory without end.
"""

import re
from collections import defaultdict
from typing import Any

from sqlalchemy import event

from headwater.config import Settings
from headwater.store.collecting.sources import request_refresh
from headwater.store.core.database import Store
from headwater.store.pipelines.attaching import attach
from tests.clock import FakeClock
from tests.collect.test_engine import add, collect, rss, settings
from tests.origin import Origin
from tests.pipeline.making import make_template, step

__all__ = ["settings"]

MOST_ITEMS = 40
MOST_FORMS = 7  # powers of two up to 64
LISTS = re.compile(r"(?:\((?:\?(?:, ?)?)+\)(?:, ?)?)+")


async def test_statements_come_in_few_lengths(
    store: Store, settings: Settings, origin: Origin, clock: FakeClock
) -> None:
    forms: dict[str, set[str]] = defaultdict(set)

    @event.listens_for(store.engine, "before_cursor_execute")
    def note(_: Any, __: Any, statement: str, *___: Any) -> None:
        forms[LISTS.sub("(…)", statement)].add(statement)

    template = make_template(store, step("filter_content", exclude_keywords=["nowhere"]))
    for count in range(1, MOST_ITEMS + 1):
        origin.route(f"/{count}", body=rss(*range(count)))
        source = add(store, origin.url(f"/{count}"), clock)
        with store.writing() as connection:
            attach(connection, template.id, "source", [source.id], 0.0)
        await collect(store, settings, clock)  # one alone
        if count % 8 == 0:  # and more and more of them together
            with store.writing() as connection:
                request_refresh(connection, None, clock())
            await collect(store, settings, clock)
    assert len(forms) > 20, "everything that a visit says"
    assert {form: len(texts) for form, texts in forms.items() if len(texts) > MOST_FORMS} == {}
