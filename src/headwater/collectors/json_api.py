"""`api.json`: any JSON API, its items found and read by JMESPath expressions.

Pages are asked for until there are enough items or one is known, so an API must list its newest first. Query
parameters and headers may hold secrets, best as references (`${NAME}`): no error and no item shows their values.
"""

from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from typing import Any, Final, Literal, Self
from urllib.parse import parse_qsl, urlencode, urljoin, urlsplit, urlunsplit

from pydantic import Field, field_validator, model_validator

from headwater.collectors.answer import changed_structure, read_json, text_of
from headwater.collectors.base import (
    SECRET,
    Collector,
    FetchRequest,
    FetchResult,
    StructuredConfig,
    is_secret,
    request_for,
)
from headwater.collectors.secrets import spellings
from headwater.errors import FailureKind, ParseError, VisitError
from headwater.fetch.message import NO_VALIDATORS, Response
from headwater.formats.dates import LAST_YEAR, parse_date
from headwater.formats.expressions import Budget, compile_expression, evaluate, is_cheap
from headwater.formats.feeds.feed import Entry, Person, to_item
from headwater.formats.links import join
from headwater.model import Item
from headwater.threads import read_aside

LAST_SECOND = datetime(LAST_YEAR, 1, 1, tzinfo=UTC).timestamp()
MOST_ITEMS = 20_000  # of one answer; those after them are not looked at
BIG_BYTES = 64_000  # read off the event loop from here on
EXPRESSIONS: Final = (
    *(
        "items",
        "id",
        "title",
        "url",
        "date",
        "updated",
        "author",
        "summary",
        "content",
        "image",
        "categories",
    ),
    "cursor",
)
_TELLING: Final = (
    "id",
    "title",
    "url",
    "date",
)  # one of these missing from all items means the mapping is wrong


def _expression(description: str, default: str | None = None) -> Any:
    return Field(default=default, max_length=1000, description=description)


class MappedConfig(StructuredConfig):
    """What tells the items of a JSON document, and what is what in them."""

    items: str = _expression("Where the list of items is; @ when the whole answer is the list.", "@")
    id: str | None = _expression("Of an item: its unique id. Default: its address.")
    title: str | None = _expression("Of an item: its title.")
    url: str | None = _expression("Of an item: its address; a relative one is completed.")
    date: str | None = _expression(
        "Of an item: when it was published (ISO 8601, RFC 822, or seconds or milliseconds since 1970)."
    )
    updated: str | None = _expression("Of an item: when it was last changed, in the same forms.")
    author: str | None = _expression("Of an item: who wrote it.")
    summary: str | None = _expression("Of an item: a short text, as HTML.")
    content: str | None = _expression("Of an item: the whole text, as HTML.")
    image: str | None = _expression("Of an item: the address of a picture.")
    categories: str | None = _expression("Of an item: its categories, a list of texts or one text.")
    cursor: str | None = _expression(
        "Of the answer: what to ask the next page with, or the next page's address."
    )
    limit: int = Field(default=100, ge=1, le=5_000, description="How many items at most in one visit.")
    max_pages: int = Field(default=5, ge=1, le=50, description="How many pages at most in one visit.")

    @field_validator(*EXPRESSIONS)
    @classmethod
    def _compiles(cls, value: str | None) -> str | None:
        if value is not None:
            try:
                compile_expression(value)
            except ValueError as error:
                raise ValueError(f"not a JMESPath expression: {error}") from None
        return value

    @model_validator(mode="after")
    def _says_enough(self) -> Self:
        if not (self.id or self.title or self.url):
            raise ValueError("set at least one of id, title and url, or items cannot be told apart")
        return self


class JsonApiConfig(MappedConfig):
    params: dict[str, str] = Field(
        default_factory=dict, description="Query parameters to add to the address.", json_schema_extra=SECRET
    )
    pagination: Literal["none", "page", "offset", "cursor"] = Field(
        default="none",
        description="How to ask for more: by the page's number, by how many items to skip, or with a cursor from"
        " the answer.",
    )
    page_param: str | None = Field(
        default=None, description="The query parameter for it; without it page, offset or cursor."
    )
    first_page: int = Field(default=1, ge=0, le=1, description="The number of the first page.")

    @model_validator(mode="after")
    def _pages_by_cursor(self) -> Self:
        if (self.pagination == "cursor") != (self.cursor is not None):
            raise ValueError("pagination=cursor and cursor need each other")
        return self


class JsonApiCollector(Collector):
    config_model = JsonApiConfig

    async def collect(self, fetch_request: FetchRequest) -> FetchResult:
        result = await with_hidden_secrets(fetch_request, fetch_request.config.params, _collect)
        # An address that it moved to may have a secret in its query.
        return replace(result, permanent_url=None) if fetch_request.config.params else result


async def with_hidden_secrets(
    fetch_request: FetchRequest,
    params: Mapping[str, str],
    collect: Callable[[FetchRequest], Awaitable[FetchResult]],
) -> FetchResult:
    """The result of `collect`; no secret of the config stands in its items or in what it raises."""
    hidden = _spellings_to_hide(fetch_request, params)
    if not hidden:
        return await collect(fetch_request)
    try:
        result = await collect(fetch_request)
    except VisitError as error:
        raise error.with_values(lambda value: _hide(value, hidden)) from None
    return replace(result, items=tuple(_hide_in_item(item, hidden) for item in result.items))


async def _collect(fetch_request: FetchRequest) -> FetchResult:
    config: JsonApiConfig = fetch_request.config
    address: str | None = with_params(fetch_request.source.url, config.params)
    first: Response | None = None
    items: dict[str, Item] = {}
    requests = received = pages = count = 0
    while address is not None:
        request = replace(
            request_for(fetch_request.source, config, address), accept="application/json, */*;q=0.1"
        )
        if first is not None:
            request = replace(request, validators=NO_VALIDATORS)
        response = await fetch_request.fetcher.get(request)
        requests, received = requests + response.requests, received + response.bytes_received
        if first is None:
            first = response
            if response.unchanged:
                return FetchResult.of(response)
        page, cursor = await read_mapped(response, config)
        pages, count = pages + 1, count + len(page)
        before = len(items)
        items |= {item.external_id: item for item in page if item.external_id not in items}
        if len(items) == before or len(items) >= config.limit or pages >= config.max_pages:
            break  # a page without anything new is the end of many APIs, and others start over
        address = next_address(fetch_request.source.url, config, pages, count, cursor)
        if address is not None and await fetch_request.known([item.external_id for item in page]):
            break
    assert first is not None  # noqa: S101 - the loop was entered
    return replace(
        FetchResult.of(first),
        items=tuple(items.values())[: config.limit],
        requests=requests,
        bytes_received=received,
    )


async def read_mapped(response: Response, config: MappedConfig) -> tuple[list[Item], Any]:
    """The items of an answer, and the cursor to the next; read off the event loop when that may take a while."""
    if len(response.body) < BIG_BYTES and _is_cheap(config):
        return parse(response, config)
    return await read_aside(len(response.body), parse, response, config)


def _is_cheap(config: MappedConfig) -> bool:
    written = (getattr(config, name) for name in EXPRESSIONS)
    return all(is_cheap(expression) for expression in written if expression is not None)


def parse(response: Response, config: MappedConfig) -> tuple[list[Item], Any]:
    """The items of an answer, and the cursor to the next. VisitError names the expression that finds nothing."""
    data = read_json(response)
    search = partial(_search, url=response.url, budget=Budget())
    found = search("items", config.items, data)
    if not isinstance(found, list):
        raise changed_structure(response.url, f"a list at items = {config.items}")
    items = list(_read_items(found[:MOST_ITEMS], config, response.url, search))
    cursor = search("cursor", config.cursor, data) if config.cursor else None
    return items, cursor


def _read_items(
    found: list[Any], config: MappedConfig, url: str, search: Callable[[str, str, Any], Any]
) -> Iterator[Item]:
    values = [
        {
            name: search(name, expression, each)
            for name in EXPRESSIONS[1:-1]
            if (expression := getattr(config, name))
        }
        for each in found
        if each is not None
    ]
    for name in _TELLING:
        read = read_moment if name == "date" else text_of
        if values and getattr(config, name) and all(read(each[name]) is None for each in values):
            raise changed_structure(url, f"{name} = {getattr(config, name)} in any item")
    for each in values:
        text = {name: text_of(value) for name, value in each.items()}
        if text.get("id") or text.get("url") or text.get("title"):
            yield to_item(_entry(each, text, url))


def _entry(values: dict[str, Any], text: dict[str, str | None], url: str) -> Entry:
    return Entry(
        id=text.get("id"),
        link=join(url, text.get("url")),
        title=" ".join((text.get("title") or "").split()),
        authors=tuple(Person(name) for name in texts_of(values.get("author"))),
        published=read_moment(values.get("date")),
        updated=read_moment(values.get("updated")),
        summary=text.get("summary"),
        content=text.get("content"),
        image=join(url, text.get("image")),
        categories=tuple(texts_of(values.get("categories"))),
    )


def read_moment(value: Any) -> datetime | None:
    """A date in any of the forms APIs have: text, or a number of (milli-, micro-, nano-) seconds since 1970."""
    if isinstance(value, str):
        return parse_date(value)
    if not isinstance(value, int | float) or isinstance(value, bool):
        return None
    seconds = float(value)
    while 1e11 <= seconds < 1e20:
        seconds /= 1000
    return datetime.fromtimestamp(int(seconds), UTC) if 0 < seconds < LAST_SECOND else None


def texts_of(value: Any) -> list[str]:
    """One text, or those of a list."""
    values = value if isinstance(value, list) else [value]
    return [text for each in values if (text := text_of(each))]


def with_params(url: str, params: dict[str, str]) -> str:
    """The address with these query parameters, in the place of those it has under the same names."""
    if not params:
        return url
    parts = urlsplit(url)
    kept = [
        (name, value) for name, value in parse_qsl(parts.query, keep_blank_values=True) if name not in params
    ]
    return urlunsplit(parts._replace(query=urlencode([*kept, *params.items()])))


def next_address(url: str, config: JsonApiConfig, pages: int, count: int, cursor: Any) -> str | None:
    """The address of the page after `pages` pages with `count` items; None when there is none."""
    param = config.page_param or config.pagination
    if config.pagination == "none":
        return None
    if config.pagination == "page":
        return with_params(url, config.params | {param: str(config.first_page + pages)})
    if config.pagination == "offset":
        return with_params(url, config.params | {param: str(count)})
    text = text_of(cursor)
    if text is None:
        return None
    if text.startswith(("http://", "https://", "/")):
        following = urljoin(url, text)
        if urlsplit(following)[:2] != urlsplit(url)[:2]:
            raise ParseError(
                "the next page is on another host, which is not asked: headers and parameters are for {host} alone",
                kind=FailureKind.CHANGED_STRUCTURE,
                host=urlsplit(url).netloc,
            )
        return with_params(following, config.params)
    return with_params(url, config.params | {param: text})


def _search(key: str, expression: str, data: Any, *, url: str, budget: Budget) -> Any:
    try:
        return evaluate(expression, data, budget)
    except ValueError as error:
        raise ParseError(
            "{url}: the expression {key} = {expression} does not fit the answer: {problem}",
            kind=FailureKind.CHANGED_STRUCTURE,
            url=url,
            key=key,
            expression=expression,
            problem=" ".join(str(error).split())[:200],
        ) from None


def _spellings_to_hide(fetch_request: FetchRequest, params: Mapping[str, str]) -> dict[str, str]:
    """How each parameter stands in an address, and every value that is a secret by its name or by reference."""
    config: MappedConfig = fetch_request.config
    hidden = {urlencode({name: value}): f"{urlencode({name: ''})}***" for name, value in params.items()}
    stored = fetch_request.source.config
    given = {"params": params, "headers": config.headers, "cookies": config.cookies}
    for key, values in given.items():
        for name, value in values.items():
            if is_secret(name) or stored.get(key, {}).get(name) != value:
                hidden |= dict.fromkeys(spellings(value), "***")
    for key in ("password", "bearer_token"):
        hidden |= dict.fromkeys(spellings(getattr(config, key) or ""), "***")
    return hidden


def _hide(text: str, hidden: Mapping[str, str]) -> str:
    for spelling, shown in hidden.items():
        text = text.replace(spelling, shown)
    return text


def _hide_in_item(item: Item, hidden: Mapping[str, str]) -> Item:
    """APIs repeat the parameters of a request in addresses of their answer, a key among them."""
    return replace(
        item,
        external_id=_hide(item.external_id, hidden),
        url=_hide(item.url, hidden) if item.url else None,
        image_url=_hide(item.image_url, hidden) if item.image_url else None,
    )
