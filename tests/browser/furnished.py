"""A database with one of everything, for pages to show: written as the collector and its worker would have."""

import time
from pathlib import Path
from typing import Any

from headwater.model import Item
from headwater.pipeline.examples import EXAMPLES
from headwater.pipeline.templates import read_template
from headwater.publish.digests import read_digest
from headwater.store.collecting.sources import add_source, change_source
from headwater.store.core.database import Store
from headwater.store.people.bookmarks import add_bookmark
from headwater.store.people.rules import Rule, RuleActions, add_rule
from headwater.store.people.subscriptions import OWNER
from headwater.store.pipelines.attaching import attach
from headwater.store.pipelines.starting import cancel, start_runs
from headwater.store.pipelines.templates import add_template
from headwater.store.publishing.digests import Digest, add_digest
from headwater.store.publishing.targets import Target, add_target
from headwater.store.reading.items import ItemChange, write_items
from headwater.store.reading.outlets import Outlet, add_outlet
from headwater.store.reading.selection import Selection

# Every page, with the numbers that the furnishing gives.
PAGES = (
    "/",
    "/sources",
    "/sources/add",
    "/sources/1",
    "/items",
    "/items?search=river",
    "/items?item=1",
    "/items/1",
    "/pipelines",
    "/pipelines/new?example=webhook",
    "/pipelines/1",
    "/runs",
    "/runs/1",
    "/outlets",
    "/outlets/new",
    "/outlets/picked/edit",
    "/settings",
    "/statistics",
    "/users",
    "/account",
    "/digests",
    "/digests/daily",
    "/digests/daily/edit",
    "/alerts",
    "/targets",
    "/rules",
    "/models",
    "/read?view=all",
    "/read?view=all&item=1",
    "/read?search=river",
    "/read/feeds",
    "/read/add",
    "/bookmarks",
    "/bookmarks/1",
    "/connect",
    "/progress",
    "/api/docs",
    "/sources/watch",
    "/nothing-here",
)


def furnish(directory: Path, *, text: str = "The river", url: str = "https://news.example/") -> None:
    """Fill the database in `directory`; whatever can hold text holds `text`, every address is `url`."""
    now = time.time()
    with Store.open(f"sqlite:///{directory / 'headwater.db'}") as store, store.writing() as connection:
        source = add_source(connection, name=text, type="rss.feed", url=url, now=now, folder=text)
        change_source(connection, source.id, now, schedule_enabled=True)
        body = f"<p>{text}</p><p>It rises.</p>"
        _write(connection, source.id, "new", Item("1", url=url, title=text, author=text, content=body), now)
        changed = Item("1", url=url, title=text, author=text, content=f"<p>{text}</p><p>It falls.</p>")
        _write(connection, source.id, "updated", changed, now)
        add_outlet(connection, Outlet("picked", text, Selection(outlet="picked"), text), now)
        add_target(connection, Target("team", "webhook", {"url": "https://news.example/hook"}), now)
        digest = Digest("daily", text, "every 1 hours", targets=("team",))
        add_digest(connection, read_digest(digest, now), now)
        add_rule(
            connection,
            Rule(0, OWNER, text, {"include_keywords": [text]}, actions=RuleActions(star=True)),
            now,
        )
        add_bookmark(connection, OWNER, url, now, title=text)
        template = add_template(
            connection,
            read_template({"name": text, "description": text, "steps": list(EXAMPLES[1].steps)}),
            now,
        )
        attach(connection, template.id, "source", [source.id], 0.0)
        (run_id,) = start_runs(connection, template, [1], now)
        cancel(connection, run_id, now)


def _write(connection: Any, source_id: int, kind: Any, item: Item, now: float) -> None:
    key = item.external_id.encode()
    write_items(connection, [(source_id, (ItemChange(kind, item, key, key, (), kind.encode(), now),), now)])
