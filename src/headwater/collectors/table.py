"""`file.table`: lists in files, with a row for each item: CSV, TSV, Excel.

Which column means what is guessed by its name, unless the config says it. All other columns become
the text of the item.
"""

import hashlib
from datetime import UTC, datetime
from typing import Any, Final

from pydantic import Field

from headwater.collectors.base import Collector, FetchRequest, FetchResult, StructuredConfig, request_for
from headwater.errors import FailureKind, ParseError
from headwater.fetch.message import Response, public_url
from headwater.formats.dates import parse_date
from headwater.formats.feeds.feed import Entry, Person, to_item
from headwater.formats.html import escape_text, text_as_html
from headwater.formats.links import join
from headwater.formats.tables import Part, Row, guess_parts, read_table
from headwater.model import Item
from headwater.threads import read_aside

COLUMNS: Final[tuple[Part, ...]] = (
    *("id", "title", "url", "date", "updated", "author", "summary", "content", "image", "categories"),
)
LONGEST_TITLE: Final = 200
_OLDEST: Final = datetime(1, 1, 1, tzinfo=UTC)


def _column(what: str) -> Any:
    return Field(
        default=None, max_length=200, description=f"The column of {what}; without it, guessed by name."
    )


class TableConfig(StructuredConfig):
    id: str | None = _column("what tells a row from the others")
    title: str | None = _column("titles")
    url: str | None = _column("addresses")
    date: str | None = _column("dates")
    updated: str | None = _column("dates of changes")
    author: str | None = _column("authors")
    summary: str | None = _column("short texts")
    content: str | None = _column("whole texts")
    image: str | None = _column("addresses of pictures")
    categories: str | None = _column("categories, separated by commas or semicolons")
    sheet: str | None = Field(
        default=None, max_length=200, description="The sheet of a workbook; without it, the first."
    )
    limit: int = Field(default=1_000, ge=1, le=20_000, description="How many rows at most in one visit.")
    newest_last: bool = Field(
        default=False,
        description="Whether new rows are added at the end: of lists longer than limit, the last rows are taken.",
    )


class TableCollector(Collector):
    config_model = TableConfig

    async def collect(self, fetch_request: FetchRequest) -> FetchResult:
        source, config = fetch_request.source, fetch_request.config
        response = await fetch_request.fetcher.get(request_for(source, config))
        if response.unchanged:
            return FetchResult.of(response)
        items, left_out = await read_aside(len(response.body), read_rows, response, config)
        return FetchResult.of(response, items=items, beyond_count=left_out)


def read_rows(response: Response, config: TableConfig) -> tuple[tuple[Item, ...], int]:
    """The items of a list, and how many rows were left out. ParseError names a column that is not there."""
    rows = read_table(response.body, response.content_type, sheet=config.sheet)
    names = list(dict.fromkeys(name for row in rows[:1_000] for name in row))
    parts = guess_parts(names)
    for part in COLUMNS:
        chosen = getattr(config, part)
        if chosen is not None and rows and chosen not in names:
            raise ParseError(
                "{url} has no column {column}; there are: {columns}",
                kind=FailureKind.CHANGED_STRUCTURE,
                url=public_url(response.url),
                column=chosen,
                columns=", ".join(names[:30]),
            )
        if chosen is not None:
            parts[part] = chosen
    taken = rows[-config.limit :] if config.newest_last else rows[: config.limit]
    entries = [_entry(row, parts, response.url) for row in taken]
    entries.sort(key=lambda entry: entry.published or _OLDEST, reverse=True)
    items = {item.external_id: item for item in map(to_item, entries)}
    return tuple(items.values()), len(rows) - len(taken)


def _entry(row: Row, parts: dict[Part, str], url: str) -> Entry:
    said = {part: row.get(name, "") for part, name in parts.items()}
    others = {name: value for name, value in row.items() if value and name not in parts.values()}
    link = said.get("url") or None
    title = said.get("title") or next(iter(others.values()), "") or link or ""
    facts = "".join(
        f"<dt>{escape_text(name)}</dt><dd>{escape_text(value)}</dd>" for name, value in others.items()
    )
    body = _body(said.get("content"))
    return Entry(
        id=said.get("id") or (None if link else _digest(row)),
        link=join(url, link),
        title=" ".join(title.split())[:LONGEST_TITLE],
        authors=(Person(said["author"]),) if said.get("author") else (),
        published=parse_date(said.get("date")),
        updated=parse_date(said.get("updated")),
        summary=_body(said.get("summary")),
        content=f"{body or ''}<dl>{facts}</dl>" if facts else body,
        image=join(url, said.get("image")),
        categories=_words(said.get("categories", "")),
    )


def _body(text: str | None) -> str | None:
    """A cell as HTML, which it may be already."""
    if not text:
        return None
    return text if "</" in text or "<br" in text else text_as_html(text)


def _words(text: str) -> tuple[str, ...]:
    return tuple(word for each in text.replace(";", ",").split(",") if (word := each.strip()))


def _digest(row: Row) -> str:
    """What tells a row from others where no column does: all that it says."""
    told = "\x1f".join(f"{name}\x1e{value}" for name, value in row.items())
    return f"row:{hashlib.blake2b(told.encode('utf-8', 'surrogatepass'), digest_size=16).hexdigest()}"
