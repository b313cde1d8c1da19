"""A feed is read back to its beginning: by archives and by pages, from where it was left, each item once."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import pytest
from sqlalchemy import func, select

from headwater.collect.archive import Place, read_back
from headwater.collect.context import VisitContext, read_visit_context
from headwater.config import load_settings
from headwater.errors import InputError, VisitError
from headwater.model import Source
from headwater.sources.adding import add_and_visit, read_new_source
from headwater.store.collecting.memory import read_memory
from headwater.store.collecting.sources import get_source
from headwater.store.core.database import Store
from headwater.store.core.tables import collection_records, items
from tests.fetch import door
from tests.origin import Answer, Origin, Received

ATOM = "http://www.w3.org/2005/Atom"


class Archive:
    """A feed of so many items in documents of ten, as section 4 (or 3) of RFC 5005 has it."""

    def __init__(
        self, origin: Origin, count: int, relation: str = "prev-archive", per_document: int = 10
    ) -> None:
        self.origin, self.count, self.relation = origin, count, relation
        self.per_document = per_document
        self.broken: set[int] = set()
        self.url = origin.route("/feed", lambda request: self._answer(0))
        self._last = (count - 1) // self.per_document
        for number in range(1, self._last + 1):
            origin.route(f"/archive/{number}", self._script(number))

    def _script(self, number: int) -> Callable[[Received], Answer]:
        return lambda request: self._answer(number)

    def _answer(self, number: int) -> Answer:
        if number in self.broken:
            return Answer("no", status=404)
        newest = self.count - number * self.per_document
        entries = "".join(
            f"<entry><id>tag:e.org,{each}</id><title>Entry {each}</title>"
            f"<link href='http://e.org/{each}'/><updated>20{each // 365 + 1:02}-01-01T00:00:00Z</updated></entry>"
            for each in range(newest, max(newest - self.per_document, 0), -1)
        )
        older = f"<link rel='{self.relation}' href='/archive/{number + 1}'/>" if number < self._last else ""
        return Answer(
            f"<feed xmlns='{ATOM}'><title>All</title><id>x</id><updated>2026-01-01T00:00:00Z</updated>"
            f"{older}{entries}</feed>",
            content_type="application/atom+xml",
        )


@asynccontextmanager
async def added(
    store: Store, url: str, config: dict[str, str] | None = None
) -> AsyncIterator[tuple[Source, VisitContext]]:
    async with door() as fetcher:
        context = await read_visit_context(store, load_settings(environment={}), fetcher)
        yield await add_and_visit(read_new_source(url, config=config), context), context


def stored(store: Store) -> int:
    with store.reading() as connection:
        return int(connection.execute(select(func.count()).select_from(items)).scalar_one())


@pytest.mark.parametrize("relation", ["prev-archive", "next"])
async def test_archive_is_read_to_its_beginning(store: Store, origin: Origin, relation: str) -> None:
    archive = Archive(origin, 95, relation)
    async with added(store, archive.url) as (source, context):
        assert stored(store) == 10
        place = await read_back(source.id, context)
        assert (place.documents, place.items, place.url) == (10, 85, None)
        assert stored(store) == 95
        again = await read_back(source.id, context)
    assert (again.documents, again.items, stored(store)) == (10, 0, 95)


async def test_archive_goes_on_where_a_document_could_not_be_read(store: Store, origin: Origin) -> None:
    archive = Archive(origin, 95)
    archive.broken = {4}
    async with added(store, archive.url) as (source, context):
        with pytest.raises(VisitError, match="/archive/4"):
            await read_back(source.id, context)
        assert stored(store) == 40
        archive.broken = set()
        asked = len(origin.requests)
        place = await read_back(source.id, context)
    assert (place.documents, place.items, stored(store)) == (10, 85, 95)
    assert len(origin.requests) - asked == 6, "what was read is not asked for again"


async def test_visits_and_plans_do_not_notice_it(store: Store, origin: Origin) -> None:
    archive = Archive(origin, 45)
    async with added(store, archive.url) as (source, context):
        await read_back(source.id, context)
    with store.reading() as connection:
        after = get_source(connection, source.id)
        why = connection.execute(select(collection_records.c.planned_by)).scalars().all()
    for name in (
        "next_fetch_at",
        "plan_reason",
        "policy_state",
        "fetch_count",
        "last_entry_at",
        "validators",
    ):
        assert getattr(after, name) == getattr(source, name)
    assert sorted(why) == ["asked"] * 5 + ["first"]


async def test_changed_item_in_an_old_document_does_not_undo_what_is_stored(
    store: Store, origin: Origin
) -> None:
    def answer(title: str, older: str) -> str:
        return f"<feed xmlns='{ATOM}'>{older}<entry><id>1</id><title>{title}</title></entry></feed>"

    origin.route("/old", body=answer("First wording", ""))
    url = origin.route("/feed", body=answer("Corrected", "<link rel='prev-archive' href='/old'/>"))
    async with added(store, url) as (source, context):
        assert (await read_back(source.id, context)).items == 0
    with store.reading() as connection:
        assert connection.execute(select(items.c.title, items.c.version)).all() == [("Corrected", 1)]


async def test_circle_of_documents_comes_to_an_end(store: Store, origin: Origin) -> None:
    page = f"<feed xmlns='{ATOM}'><link rel='next' href='?page={{}}'/><entry><id>1</id><title>a</title></entry></feed>"
    url = origin.route("/feed", lambda request: Answer(page.format(len(origin.requests))))
    async with added(store, url) as (source, context):
        place = await read_back(source.id, context)
    assert (place.documents, place.url) == (2, None)


async def test_secrets_stay_with_their_origin(store: Store, origin: Origin) -> None:
    with Origin(host="127.0.0.2") as other:
        old = other.route(
            "/old", body=f"<feed xmlns='{ATOM}'><entry><id>0</id><title>a</title></entry></feed>"
        )
        url = origin.route(
            "/feed",
            body=f"<feed xmlns='{ATOM}'><link rel='prev-archive' href='{old}'/>"
            "<entry><id>1</id><title>b</title></entry></feed>",
        )
        async with added(store, url, {"bearer_token": "s3cr3t"}) as (source, context):
            assert (await read_back(source.id, context)).items == 1
        assert origin.requests[-1].headers["authorization"] == "Bearer s3cr3t"
        assert "authorization" not in other.requests[-1].headers


async def test_source_without_an_archive_says_so(store: Store, origin: Origin) -> None:
    url = origin.route("/feed", body="<rss><channel><item><guid>1</guid></item></channel></rss>")
    page = origin.route("/p", body="<div><p><a href=/1>One</a></p></div>", content_type="text/html")
    origin.route("/robots.txt", status=404)
    async with added(store, url) as (source, context):
        with pytest.raises(VisitError, match="nothing to read back"):
            await read_back(source.id, context)
        with store.reading() as connection:
            assert Place.read(read_memory(connection, source.id)) is None
        watched = await add_and_visit(read_new_source(page, "website", {"item": "p"}), context)
        with pytest.raises(InputError, match="only feeds have archives"):
            await read_back(watched.id, context)


@pytest.mark.parametrize("memory", [None, b"", b"{", b"[]", b'{"archive": 1}', b'{"archive": {"url": "x"}}'])
def test_place_that_cannot_be_read_is_none(memory: bytes | None) -> None:
    assert Place.read(memory) is None
