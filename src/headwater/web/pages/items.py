"""Items: a list to search, a reader view, and what an item said before."""

from collections.abc import Sequence
from datetime import datetime
from itertools import pairwise
from typing import Any

from fastapi import APIRouter
from fastapi.responses import HTMLResponse, Response
from markupsafe import Markup

from headwater.errors import InputError, VisitError
from headwater.fetch.client import make_fetcher
from headwater.formats.compare import COMPARED_CHARACTERS, compare
from headwater.formats.feeds.extras.clean import clean_extras
from headwater.markup import visible_text
from headwater.model import Json, ListedItem, StoredItem
from headwater.newsletters.unsubscribing import letter_of, unsubscribe
from headwater.publish.bodies import text_of_item
from headwater.publish.media import MediaAddresses, use_own_media
from headwater.store.pipelines.starting import RunQuery, list_runs
from headwater.store.pipelines.templates import list_templates
from headwater.store.reading.items import ItemVersion, get_item, list_versions
from headwater.store.reading.listing import list_folders, newest_items, read_beginnings
from headwater.store.reading.media import media_secret
from headwater.store.reading.search import index_new_items
from headwater.store.reading.selection import Selection
from headwater.store.reports.catalog import CatalogSource, SourceFilter, find_sources
from headwater.threads import showing
from headwater.views.items import item_json
from headwater.web.api.paging import Cursor, decode_cursor, split_page
from headwater.web.dates import tell_date, tell_weekday
from headwater.web.pages.frame import InAction, InPage, Number, Page
from headwater.web.pages.results import shown_results

router = APIRouter()

ITEMS_ON_A_PAGE = 50
LISTED_SOURCES = 100
EXCERPT_CHARACTERS = 180
LISTED_RUNS = 20
INDEXED_AT_ONCE = 100  # new items that a search waits for; the rest is indexed beside it
COMPARED_VERSIONS = 10
SHOWN_PARTS = 100  # categories, files
# A reader wants the pictures of what they read; everything else stays as strict as everywhere.
READER_POLICY = (
    "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self' http: https: data:; media-src 'self'; "
    "connect-src 'self'; manifest-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)

# The item's fields that the page shows as a table: all but the texts, and what has its own place.
_short_fields = item_json.without(
    *("title", "summary", "content", "enclosures", "categories", "extra", "results", "result_keys", "status")
)


@router.get("/items")
async def items_page(
    page: InPage,
    search: str = "",
    folder: str = "",
    source: Number = "",
    item: Number = "",
    cursor: Cursor = None,
) -> HTMLResponse:
    """The list beside an article: of `item`, if it is given."""
    store = page.context.store
    selection = Selection(
        source_ids=(int(source),) if source else (),
        folders=(folder,) if folder else (),
        search=search.strip() or None,
    )
    problem = None
    if selection.search:
        await index_new_items(store, page.context.clock(), INDEXED_AT_ONCE)
    try:
        found = await store.read(
            newest_items, selection, after=decode_cursor(cursor, float, int), limit=ITEMS_ON_A_PAGE
        )
    except InputError as error:  # a search for nothing
        problem, found = error.render(page.language), []
    shown, following = split_page(found, ITEMS_ON_A_PAGE, lambda item: (item.item_at, item.id))
    beginnings = await store.read(read_beginnings, [each.id for each in shown])
    response = await page.show(
        "items.html",
        items=shown,
        excerpts=await showing.run(_excerpts, beginnings),
        language_of=guess_language,
        days=_day_names(shown, page),
        following=following,
        problem=problem,
        search=search,
        folder=folder,
        source=source,
        opened=await _item_values(page, int(item)) if item else None,
        folders=await store.read(list_folders),
        in_folder=await _sources_of(folder, page),
    )
    response.headers["Content-Security-Policy"] = READER_POLICY
    return response


@router.get("/items/{item_id}")
async def item_page(page: InPage, item_id: int) -> HTMLResponse:
    response = await page.show("item.html", **await _item_values(page, item_id))
    response.headers["Content-Security-Policy"] = READER_POLICY
    return response


@router.post("/items/{item_id}/unsubscribe")
async def unsubscribe_from(action: InAction, item_id: int) -> Response:
    """Ask the sender of a letter to send no more."""
    page = action.page
    page.require("admin")
    item = await page.context.store.read(get_item, item_id)
    try:
        async with make_fetcher(page.context.settings) as fetcher:
            asked = await unsubscribe(item, fetcher)
    except (InputError, VisitError) as error:
        return action.back(f"/items/{item_id}", error.render(page.language), bad=True)
    return action.back(
        f"/items/{item_id}", page.t("asked {host} to send no more e-mails; the source stays", host=asked)
    )


@router.get("/items/{item_id}/part")
async def item_part(page: InPage, item_id: int) -> HTMLResponse:
    """The article alone, which the list shows beside itself."""
    return await page.show("item_part.html", **await _item_values(page, item_id))


async def _item_values(page: Page, item_id: int) -> dict[str, Any]:
    store = page.context.store
    item = await store.read(get_item, item_id)
    earlier = await store.read(list_versions, item_id, newest=COMPARED_VERSIONS)
    addresses = MediaAddresses.under(page.context.settings.data_dir, await store.read(media_secret))
    own = await showing.run(addresses.of_item, item)
    body, cut = await showing.run(readable, item, own)
    return {
        "item": item,
        "body": body,
        "cut": cut or item.is_cut,
        "image_url": own.get(item.image_url or "", item.image_url),
        "files": [(file, own.get(file.url, file.url)) for file in item.enclosures[:SHOWN_PARTS]],
        "categories": item.categories[:SHOWN_PARTS],
        "said": said_by(item.extras or {}),
        "letter": letter_of(item),
        "fields": [field for field in _short_fields(item).items() if field[1] not in (None, [], {})],
        "results": await showing.run(shown_results, item, own),
        "runs": await store.read(list_runs, RunQuery(item_id=item_id), limit=LISTED_RUNS),
        "templates": await store.read(list_templates),
        "versions": await showing.run(_changes, earlier, item),
    }


async def _sources_of(folder: str, page: Page) -> list[CatalogSource]:
    """The sources of the folder that is open, for the tree."""
    if not folder:
        return []
    found = await page.context.store.read(
        find_sources, SourceFilter(folder=folder), now=page.context.clock(), sort="name", limit=LISTED_SOURCES
    )
    return sorted(found, key=lambda source: source.name.lower())


def _excerpts(beginnings: dict[int, str]) -> dict[int, str]:
    return {
        item_id: " ".join(visible_text(text, EXCERPT_CHARACTERS).split())
        for item_id, text in beginnings.items()
    }


def _day_names(shown: Sequence[ListedItem], page: Page) -> dict[int, str]:
    """What is written above the first item of each day, by the item's number."""
    names: dict[int, str] = {}
    before = None
    today = datetime.fromtimestamp(page.context.clock(), page.zone).date()
    for item in shown:
        day = datetime.fromtimestamp(item.item_at, page.zone).date()
        if day != before:
            names[item.id] = page.t("Today") if day == today else tell_weekday(day, page.language)
        if day != before and (today - day).days >= 7:
            names[item.id] = tell_date(day, page.language)
        before = day
    return names


def guess_language(text: str) -> str | None:
    """The language in which a title is set: one with Han characters is Chinese, unless it has kana."""
    if any("\u3040" <= each <= "\u30ff" for each in text):
        return "ja"
    return "zh" if any("\u4e00" <= each <= "\u9fff" for each in text) else None


def readable(item: StoredItem, own: dict[str, str] | None = None) -> tuple[Markup, bool]:
    """An item's body as it may be shown: sanitised, its links leading where they led at the publisher's.

    `own`: the addresses here of files that were archived. Beside it, whether something of it is left out because it is
    too big.
    """
    body, cut = text_of_item(item)
    return Markup(use_own_media(body, own or {})), cut  # noqa: S704 - just sanitised


def _changes(earlier: list[ItemVersion], item: StoredItem) -> list[dict[str, Any]]:
    """What changed from each version to the one after it, newest first."""
    texts = [*map(_plain, earlier), _plain(item)]
    return [
        {"version": version.version + 1, "at": version.replaced_at, "changes": compare(*pair)}
        for version, pair in zip(earlier, pairwise(texts), strict=True)
    ][::-1]


def _plain(said: StoredItem | ItemVersion) -> str:
    body = visible_text(said.content or said.summary or "", COMPARED_CHARACTERS)
    return f"{said.title}\n{' '.join(body.split())}"


class _Said(dict[str, Any]):
    """What an item says of itself; what it does not say is None."""

    def __missing__(self, key: str) -> None:
        return None


def said_by(extra: Json) -> _Said:
    """What an item says beyond its text, as far as a page has room for it."""
    said = clean_extras(extra, lambda address: address) or {}
    return _Said({key: _shown_part(value) for key, value in said.items()})


def _shown_part(value: Any) -> Any:
    if isinstance(value, list):
        return [_Said(each) for each in value[:SHOWN_PARTS] if isinstance(each, dict)]
    return value
