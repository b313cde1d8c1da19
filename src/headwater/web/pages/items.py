"""Items: a list to search, a reader view, and what an item said before."""

import difflib
import re
from itertools import pairwise
from typing import Annotated, Any

from fastapi import APIRouter, Query
from fastapi.responses import HTMLResponse
from markupsafe import Markup

from headwater.errors import InputError
from headwater.formats.html import plain_text, sanitize_html
from headwater.formats.links import resolve_html
from headwater.store.items import StoredItem, get_item, list_versions
from headwater.store.listing import list_folders, newest_items
from headwater.store.search import index_new_items
from headwater.store.selection import Selection
from headwater.store.starting import RunQuery, list_runs
from headwater.store.templates import list_templates
from headwater.web.api.paging import Cursor, decode_cursor, split_page
from headwater.web.pages.frame import InPage

router = APIRouter()

ITEMS_ON_A_PAGE = 50
LISTED_RUNS = 20
COMPARED_CHARACTERS = 20_000  # of two versions: more takes longer than anybody waits
# A reader wants the pictures of what they read; everything else stays as strict as everywhere.
READER_POLICY = (
    "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self' http: https: data:; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)


@router.get("/items")
async def items_page(
    page: InPage,
    search: str = "",
    folder: str = "",
    source: Annotated[str, Query(pattern=r"^\d{0,18}$")] = "",
    cursor: Cursor = None,
) -> HTMLResponse:
    store = page.context.store
    selection = Selection(
        source_ids=(int(source),) if source else (),
        folders=(folder,) if folder else (),
        search=search.strip() or None,
    )
    problem = None
    if selection.search:
        await store.write(index_new_items, page.context.clock())
    try:
        found = await store.read(
            newest_items, selection, after=decode_cursor(cursor, float, int), limit=ITEMS_ON_A_PAGE
        )
    except InputError as error:  # a search for nothing
        problem, found = error.render(page.language), []
    shown, following = split_page(found, ITEMS_ON_A_PAGE, lambda item: (item.item_at, item.id))
    return await page.show(
        "items.html",
        items=shown,
        following=following,
        problem=problem,
        search=search,
        folder=folder,
        source=source,
        folders=await store.read(list_folders),
    )


@router.get("/items/{item_id}")
async def item_page(page: InPage, item_id: int) -> HTMLResponse:
    store = page.context.store
    item = await store.read(get_item, item_id)
    earlier = await store.read(list_versions, item_id)
    texts = [_plain(version.title, version.content or version.summary) for version in earlier]
    texts.append(_plain(item.title, item.content or item.summary))
    response = await page.show(
        "item.html",
        item=item,
        body=readable(item),
        runs=await store.read(list_runs, RunQuery(item_id=item_id), limit=LISTED_RUNS),
        templates=await store.read(list_templates),
        versions=[
            {"version": version.version + 1, "at": version.replaced_at, "changes": compare(*pair)}
            for version, pair in zip(earlier, pairwise(texts), strict=True)
        ][::-1],
    )
    response.headers["Content-Security-Policy"] = READER_POLICY
    return response


def readable(item: StoredItem) -> Markup:
    """An item's body as it may be shown: sanitised, its links leading where they led at the publisher's."""
    body = item.content or item.summary or ""
    return Markup(sanitize_html(resolve_html(body, item.url)))  # noqa: S704 - just sanitised


def compare(old: str, new: str) -> list[tuple[str, str]]:
    """Two texts as runs of ("same" | "gone" | "come", text), word by word."""
    before, after = _words(old), _words(new)
    runs: list[tuple[str, str]] = []
    for kind, a, b, c, d in difflib.SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
        if kind == "equal":
            runs.append(("same", "".join(before[a:b])))
            continue
        if a < b:
            runs.append(("gone", "".join(before[a:b])))
        if c < d:
            runs.append(("come", "".join(after[c:d])))
    return runs


def _words(text: str) -> list[str]:
    return re.findall(r"\s+|\w+|[^\w\s]", text[:COMPARED_CHARACTERS])[:4_000]


def _plain(title: str, body: Any) -> str:
    return f"{title}\n{plain_text(body or '')}"
