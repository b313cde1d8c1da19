"""Digests gather what is new since the last issue, once, and are stored, sent and published."""

from collections.abc import AsyncIterator
from random import Random
from typing import Any

import pytest

from headwater.errors import ConflictError, InputError, NotFoundError
from headwater.fetch.client import Fetcher
from headwater.formats.feeds.parse import parse
from headwater.model import Item, Result
from headwater.pipeline.ledger import Ledger
from headwater.publish.digest_context import DigestContext
from headwater.publish.digests import (
    LEASE_SECONDS,
    MOST_ATTEMPTS,
    DigestMaker,
    read_digest,
    remake_issue,
    send_issue,
)
from headwater.publish.outlets import render_outlet
from headwater.publish.previews import preview_issues
from headwater.store.core.database import Store
from headwater.store.pipelines.models import Limits
from headwater.store.publishing.digests import (
    Digest,
    Issue,
    add_digest,
    change_digest,
    claim_digest,
    get_digest,
    list_issues,
    make_due,
    remove_digest,
    settle_digest,
)
from headwater.store.publishing.outbox import list_deliveries
from headwater.store.publishing.targets import Target, add_target
from headwater.store.reading.items import ItemChange, write_items
from headwater.store.reading.outlets import Outlet, add_outlet, read_edition, remove_outlet
from headwater.store.reading.results import NewResult, write_results
from headwater.store.reading.selection import Selection
from tests.clock import FakeClock
from tests.fetch import door
from tests.origin import Answer, Origin
from tests.pipeline.making import make_items
from tests.pipeline.steps.model_service import ModelService


@pytest.fixture
async def fetcher() -> AsyncIterator[Fetcher]:
    async with door() as opened:
        yield opened


@pytest.fixture(autouse=True)
def source(store: Store) -> None:
    make_items(store, 0)


def maker(store: Store, fetcher: Fetcher | None, clock: FakeClock) -> DigestMaker:
    return DigestMaker(store, make_context(store, fetcher, clock), clock, Random(1))


def make_context(store: Store, fetcher: Fetcher | None, clock: FakeClock) -> DigestContext:
    return DigestContext(fetcher, {}, Ledger(store, clock, Limits()))


def collect(store: Store, clock: FakeClock, *titles: str, **more: Any) -> None:
    changes = tuple(
        ItemChange(
            "new",
            Item(title, url=f"https://one.example/{title}", title=title, summary=f"About {title}", **more),
            title.encode(),
            title.encode(),
            (),
            b"h",
            clock(),
        )
        for title in titles
    )
    with store.writing() as connection:
        write_items(connection, [(1, changes, clock())])


def add(store: Store, clock: FakeClock, name: str = "daily", **more: Any) -> Digest:
    given = {"title": "News", "schedule": "every 1 hours", **more}
    digest = read_digest(Digest(name, **given), clock())
    with store.writing() as connection:
        return add_digest(connection, digest, clock())


def issues(store: Store) -> list[Issue]:
    with store.reading() as connection:
        return list_issues(connection)


def sent(store: Store) -> list[tuple[str, str]]:
    with store.reading() as connection:
        return [(each.target, each.key) for each in list_deliveries(connection)][::-1]


async def test_digest_is_made_when_it_is_due_of_what_is_new_since_the_last(
    store: Store, clock: FakeClock
) -> None:
    collect(store, clock, "Before")
    digest = add(store, clock)
    making = maker(store, None, clock)
    collect(store, clock, "Flood", "Drought")
    assert not await making.run_once()
    clock.advance(3_600)
    assert await making.run_once()
    assert not await making.run_once()
    [issue] = issues(store)
    assert issue.item_count == 2
    assert "[Flood](https://one.example/Flood)" in issue.text
    assert "About Drought" in issue.html
    assert "Before" not in issue.text
    assert issue.due_at == digest.due_at
    clock.advance(3_600)
    assert await making.run_once()  # and there is nothing new
    assert len(issues(store)) == 1
    collect(store, clock, "Rain")
    clock.advance(10 * 3_600)  # several times were missed: one issue has it all
    assert await making.run_once()
    assert not await making.run_once()
    newest, _ = issues(store)
    assert newest.item_count == 1
    assert "Rain" in newest.text
    with store.reading() as connection:
        assert clock() < get_digest(connection, "daily").due_at <= clock() + 3_600


async def test_digest_is_sent_to_its_targets_once_with_the_same_key(store: Store, clock: FakeClock) -> None:
    with store.writing() as connection:
        for name in ("team", "log"):
            add_target(connection, Target(name, "webhook", {"url": "http://origin/hook"}), clock())
    digest = add(store, clock, targets=("team", "log"))
    collect(store, clock, "Flood")
    clock.advance(3_600)
    with store.writing() as connection:  # by a process that dies over it
        assert claim_digest(connection, now=clock(), lease_until=clock() + LEASE_SECONDS) is not None
    making = maker(store, None, clock)
    assert not await making.run_once()
    clock.advance(LEASE_SECONDS)
    assert await making.run_once()
    key = f"digest-{digest.id}-{digest.due_at:.0f}"
    assert sent(store) == [("team", key), ("log", key)]
    with store.writing() as connection:
        assert send_issue(connection, 1, clock(), ["log"]) == 1
    assert sent(store)[2:] == [("log", f"{key}-revision-1-again-1")]


async def test_settling_after_the_lease_has_passed_on_stores_nothing(store: Store, clock: FakeClock) -> None:
    add(store, clock)
    collect(store, clock, "Flood")
    clock.advance(3_600)
    with store.writing() as connection:
        late = claim_digest(connection, now=clock(), lease_until=clock() + 1)
        assert late is not None
        clock.advance(2)
        assert claim_digest(connection, now=clock(), lease_until=clock() + 1) is not None
        assert not settle_digest(connection, late, [], [], position=99, next_at=0.0, now=clock())
        assert get_digest(connection, "daily").position == late.position


async def test_model_writes_in_every_language_and_translations_are_used(
    store: Store, origin: Origin, fetcher: Fetcher, clock: FakeClock
) -> None:
    models = ModelService(origin)
    models.rule = lambda prompt: "河水上涨。" if "Write in zh" in prompt else "Rivers <b>rise</b>."
    config = {"write": "introduction", "languages": ["en", "zh"], "base_url": models.base_url, "model": "m"}
    add(store, clock, config=config)
    collect(store, clock, "Flood")
    with store.writing() as connection:
        translation = Result("translation", "zh", body="关于洪水", data={"title": "洪水"}, language="zh")
        write_results(connection, [NewResult(1, 1, translation, clock())])
    clock.advance(3_600)
    assert await maker(store, fetcher, clock).run_once()
    chinese, english = issues(store)
    assert (english.language, chinese.language) == ("en", "zh")
    assert "<p>Rivers &lt;b&gt;rise&lt;/b&gt;.</p>" in english.html
    assert "About Flood" in english.text
    assert "洪水" in chinese.html
    assert "关于洪水" in chinese.text
    assert "河水上涨。" in chinese.text
    assert chinese.data["model"] == "m"
    assert "Flood" in models.asked[0]["messages"][-1]["content"]


async def test_model_that_is_down_is_asked_again_and_at_last_done_without(
    store: Store, origin: Origin, fetcher: Fetcher, clock: FakeClock
) -> None:
    models = ModelService(origin)
    models.answers = [Answer(status=503, body="busy")]
    add(store, clock, config={"write": "text", "base_url": models.base_url, "model": "m"})
    collect(store, clock, "Flood")
    clock.advance(3_600)
    making = maker(store, fetcher, clock)
    for _ in range(MOST_ATTEMPTS):
        assert not issues(store)
        assert await making.run_once()
        with store.reading() as connection:
            clock.now = max(clock(), get_digest(connection, "daily").claim_at)
    [issue] = issues(store)
    assert "503" in str(issue.error_message)
    assert "The model wrote nothing" in issue.text
    assert "About Flood" in issue.text
    models.answers = ["All is wet."]
    remade = await remake_issue(store, make_context(store, fetcher, clock), issue.id, clock())
    assert (remade.revision, remade.error_message, remade.item_ids) == (2, None, issue.item_ids)
    assert "All is wet." in remade.html
    assert sent(store) == []


async def test_digest_of_scored_items_takes_the_best_first_and_says_what_is_left_out(
    store: Store, clock: FakeClock
) -> None:
    add(
        store,
        clock,
        selection=Selection(min_score=5.0),
        config={"sort": "score", "max_items": 2, "group_by": "none"},
    )
    collect(store, clock, "A", "B", "C", "D")
    with store.writing() as connection:
        for item_id, score in ((1, 6.0), (2, 9.0), (3, 7.0), (4, 1.0)):
            result = Result("score", data={"score": score, "reason": f"Because of {score:g}"})
            write_results(connection, [NewResult(item_id, 1, result, clock())])
    shown = await preview_issues(store, make_context(store, None, clock), "daily", clock())
    assert not issues(store)
    clock.advance(3_600)
    assert await maker(store, None, clock).run_once()
    [issue] = issues(store)
    assert [each.item_ids for each in shown.issues] == [issue.item_ids] == [(2, 3)]
    assert issue.omitted == 1
    assert "Because of 9" in issue.text
    assert "1 more item is left out" in issue.text


async def test_digest_with_a_search_indexes_what_is_new_first(store: Store, clock: FakeClock) -> None:
    add(store, clock, selection=Selection(search="flood"))
    collect(store, clock, "Flood", "Drought")
    clock.advance(3_600)
    assert await maker(store, None, clock).run_once()
    assert [each.item_ids for each in issues(store)] == [(1,)]


async def test_make_due_makes_an_issue_before_its_time(store: Store, clock: FakeClock) -> None:
    add(store, clock, schedule="weekly mon 08:00", zone="Asia/Shanghai")
    collect(store, clock, "Flood")
    with store.writing() as connection:
        make_due(connection, "daily", clock())
    assert await maker(store, None, clock).run_once()
    assert len(issues(store)) == 1


async def test_outlet_of_a_digest_publishes_its_issues(store: Store, clock: FakeClock) -> None:
    add(store, clock)
    with store.writing() as connection:
        add_outlet(connection, Outlet("daily-feed", "Daily", digest="daily"), clock())
        with pytest.raises(InputError, match="chooses no items"):
            add_outlet(connection, Outlet("x", "X", Selection(folders=("A",)), digest="daily"), clock())
        with pytest.raises(NotFoundError):
            add_outlet(connection, Outlet("y", "Y", digest="nothing"), clock())
        with pytest.raises(ConflictError, match="daily-feed"):
            remove_digest(connection, "daily")
        empty = read_edition(connection, "daily-feed")
    collect(store, clock, "Flood")
    clock.advance(3_600)
    assert await maker(store, None, clock).run_once()
    with store.writing() as connection:
        edition = read_edition(connection, "daily-feed")
        assert edition.tag != empty.tag
        for format in ("rss", "atom", "json"):
            [entry] = parse(render_outlet(connection, edition, format).body).entries
            assert "Flood" in (entry.content or "")
        remove_outlet(connection, "daily-feed")
        remove_digest(connection, "daily")
    assert issues(store) == []


async def test_change_of_a_digest_takes_its_lease_and_keeps_its_place(store: Store, clock: FakeClock) -> None:
    add(store, clock)
    clock.advance(3_600)
    with store.writing() as connection:
        claimed = claim_digest(connection, now=clock(), lease_until=clock() + 60)
        assert claimed is not None
        changed = change_digest(connection, "daily", clock(), title="Other", is_enabled=False)
        assert not settle_digest(connection, claimed, [], [], position=9, next_at=0.0, now=clock())
        assert (changed.title, changed.position) == ("Other", claimed.position)
    assert not await maker(store, None, clock).run_once()


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"schedule": "sometimes"}, "cannot be read"),
        ({"zone": "Mars/North"}, "time zone"),
        ({"config": {"words": 3}}, "no key words"),
        ({"config": {"max_items": 0}}, "max_items"),
        ({"config": {"write": "text", "prompt": "{{ items"}}, "prompt"),
        ({"targets": ("unknown",)}, "no target unknown"),
        ({"name": "Big Name"}, "cannot be a digest's name"),
    ],
)
def test_digest_that_cannot_work_is_refused(
    store: Store, clock: FakeClock, more: dict[str, Any], said: str
) -> None:
    with pytest.raises(InputError, match=said):
        add(store, clock, **more)


def test_digest_names_are_unique(store: Store, clock: FakeClock) -> None:
    add(store, clock)
    with pytest.raises(ConflictError):
        add(store, clock)
