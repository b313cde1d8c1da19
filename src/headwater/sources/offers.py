"""What an answer that is not a feed is collected as: a calendar, a table, files, an outbox, a JSON API, GraphQL.

It is recognised by what it says, not by its name, so that any address can be pasted.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final
from urllib.parse import urlsplit

import orjson

from headwater.collectors.graphql import propose
from headwater.errors import HeadwaterError, ParseError, VisitError
from headwater.fetch.client import Fetcher
from headwater.fetch.message import Response
from headwater.formats.activities import is_activity_streams
from headwater.formats.calendars import is_calendar
from headwater.formats.guessing import propose_mapping
from headwater.formats.limits import load_json
from headwater.formats.listings import is_bucket, is_directory
from headwater.formats.pages.rules import Offer
from headwater.formats.tables import guess_parts, read_table

_TABLES: Final = ("text/csv", "text/tab-separated-values", "application/csv", "spreadsheetml.sheet")
_TABLE_NAMES: Final = (".csv", ".tsv", ".tab", ".xlsx")
_GRAPHQL: Final = re.compile(r"/(?:graphql|gql)/?\Z", re.IGNORECASE)
_LEAST_COLUMNS: Final = 2


def recognise_answer(response: Response) -> Offer | None:
    """The source that an answer is; None where it is a page, or nothing that is known."""
    body, url = response.body, response.url
    if is_calendar(body):
        return Offer(url, "file.calendar")
    if _is_table(response):
        return Offer(url, "file.table")
    if is_bucket(body) or is_directory(body):
        return Offer(url, "file.listing")
    try:
        document = load_json(body)
    except (orjson.JSONDecodeError, ParseError):
        return None
    if is_activity_streams(document):
        return Offer(url, "api.activitypub")
    config = propose_mapping(document)
    return None if config is None else Offer(url, "api.json", config)


def _is_table(response: Response) -> bool:
    kind = (response.content_type or "").lower()
    is_named = urlsplit(response.url).path.lower().endswith(_TABLE_NAMES) or any(
        each in kind for each in _TABLES
    )
    is_text = kind.startswith("text/plain") or "octet-stream" in kind
    if not is_named and not is_text:
        return False
    try:
        rows = read_table(response.body, response.content_type)
    except HeadwaterError:
        return False
    columns = list(rows[0]) if rows else []
    return is_named or (len(columns) >= _LEAST_COLUMNS and {"title", "url"} <= guess_parts(columns).keys())


def may_be_graphql(url: str) -> bool:
    return _GRAPHQL.search(urlsplit(url).path) is not None


async def offers_of_graphql(url: str, fetcher: Fetcher) -> Sequence[Offer]:
    """Sources that ask the lists of a GraphQL schema; none where it is not told."""
    try:
        proposals = await propose(url, fetcher)
    except VisitError:
        return ()
    return [Offer(url, "api.graphql", _checked(each.config), each.name, each.name) for each in proposals]


def _checked(config: Mapping[str, Any]) -> Mapping[str, Any]:
    """Texts of others stand in no config as what refers to a secret of ours."""
    return {key: value for key, value in config.items() if "${" not in str(value)}
