"""`api.graphql`: the result of a GraphQL query, its items found and read by JMESPath expressions.

A query may have variables; with `cursor` it is asked again for the next page, with the cursor in one of them. A schema
says itself what can be asked: `propose` makes a query of what looks like a list of items.
"""

import hashlib
import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final, Self
from urllib.parse import urlsplit, urlunsplit

import orjson
from pydantic import Field, model_validator

from headwater.collectors.answer import read_json, text_of
from headwater.collectors.base import Collector, FetchRequest, FetchResult, request_for
from headwater.collectors.json_api import MappedConfig, read_mapped, with_hidden_secrets
from headwater.errors import FailureKind, ParseError, VisitError
from headwater.fetch.client import Fetcher
from headwater.fetch.message import NO_VALIDATORS, Request, Response, public_url
from headwater.formats.graphql import INTROSPECTION, Proposal, propose_query
from headwater.model import Item, Json

_MARK: Final = "headwater"
_ANSWERS: Final = frozenset((400, 422))  # how many say what is wrong with a query
_LIMITED: Final = frozenset(("RATE_LIMITED", "RATE_LIMIT", "THROTTLED", "TOO_MANY_REQUESTS"))
_REFUSED: Final = frozenset(("UNAUTHENTICATED", "FORBIDDEN", "UNAUTHORIZED"))


class GraphqlConfig(MappedConfig):
    items: str = Field(
        default="@", max_length=1000, description="Where the list of items is in data, such as posts.nodes."
    )
    query: str = Field(min_length=2, max_length=20_000, description="The query.")
    variables: dict[str, Any] = Field(default_factory=dict, description="Values of the query's variables.")
    cursor_variable: str = Field(
        default="after", max_length=100, description="The variable that takes what cursor finds."
    )

    @model_validator(mode="after")
    def _asks_only(self) -> Self:
        if self.query.lstrip().startswith(("mutation", "subscription")):
            raise ValueError("only queries are sent, no mutation and no subscription")
        return self


class GraphqlCollector(Collector):
    config_model = GraphqlConfig

    def locate(self, url: str | None, config: Json) -> tuple[str | None, Json]:
        """All queries of a server have one address: a mark in it, which is not sent, tells them apart."""
        query = config.get("query")
        if url is None or not isinstance(query, str):
            return url, config
        asked = orjson.dumps([query, config.get("variables"), config.get("items")], default=str)
        mark = hashlib.blake2b(asked, digest_size=4).hexdigest()
        parts = urlsplit(_without_mark(url))
        query_part = f"{parts.query}&{_MARK}={mark}" if parts.query else f"{_MARK}={mark}"
        return urlunsplit(parts._replace(query=query_part)), config

    async def collect(self, fetch_request: FetchRequest) -> FetchResult:
        return await with_hidden_secrets(fetch_request, {}, _collect)


def _without_mark(url: str) -> str:
    return re.sub(rf"[?&]{_MARK}=[0-9a-f]*", "", url)


async def _collect(fetch_request: FetchRequest) -> FetchResult:
    config: GraphqlConfig = fetch_request.config
    variables = dict(config.variables)
    items: dict[str, Item] = {}
    first: Response | None = None
    requests = received = 0
    asked: set[str] = set()
    for _ in range(config.max_pages):
        url = _without_mark(fetch_request.source.url)
        request = _request(request_for(fetch_request.source, config, url), config.query, variables)
        response = await fetch_request.fetcher.get(request)
        first = first or response
        requests, received = requests + response.requests, received + response.bytes_received
        page, cursor = await read_mapped(_data_of(response), config)
        before = len(items)
        items |= {item.external_id: item for item in page if item.external_id not in items}
        following = text_of(cursor)
        if (
            following is None
            or following in asked
            or len(items) in (before, *range(config.limit, len(items) + 1))
        ):
            break
        if await fetch_request.known([item.external_id for item in page]):
            break
        asked.add(following)
        variables[config.cursor_variable] = following
    assert first is not None  # noqa: S101 - there is at least one page
    return replace(
        FetchResult.of(first),
        permanent_url=None,
        items=tuple(items.values())[: config.limit],
        requests=requests,
        bytes_received=received,
    )


def _request(request: Request, query: str, variables: Mapping[str, Any]) -> Request:
    """The request that asks a query: it cannot be conditional."""
    body: dict[str, Any] = {"query": query}
    if variables:
        body["variables"] = variables
    return replace(
        request,
        body=orjson.dumps(body),
        headers={**(request.headers or {}), "Content-Type": "application/json"},
        accept="application/graphql-response+json, application/json;q=0.9",
        validators=NO_VALIDATORS,
        answers=_ANSWERS,
    )


def _data_of(response: Response) -> Response:
    """The answer with its data alone; VisitError for what it says is wrong."""
    answer = read_json(response)
    said = answer if isinstance(answer, Mapping) else {}
    errors, data = said.get("errors"), said.get("data")
    if isinstance(errors, list) and errors and not data:
        raise _error(errors[0], response)
    if not isinstance(data, Mapping):
        raise ParseError(
            "{url} did not answer as GraphQL does: there is no data.", url=public_url(response.url)
        )
    return replace(response, body=orjson.dumps(data))


def _error(error: Any, response: Response) -> VisitError:
    said = error if isinstance(error, Mapping) else {}
    extensions = said.get("extensions")
    codes = {str(said.get("type")).upper()}
    if isinstance(extensions, Mapping):
        codes.add(str(extensions.get("code")).upper())
    kind = FailureKind.CHANGED_STRUCTURE  # the schema is another one than the query was written for
    if codes & _LIMITED:
        kind = FailureKind.RATE_LIMITED
    elif codes & _REFUSED:
        kind = FailureKind.UNAUTHORIZED
    return VisitError(
        kind,
        "{url} does not answer the query: {problem}",
        http_status=response.status,
        url=public_url(response.url),
        problem=" ".join((text_of(said.get("message")) or str(error)).split())[:300],
    )


async def propose(url: str, fetcher: Fetcher) -> list[Proposal]:
    """Queries that the schema at an address allows, best first. VisitError when it does not tell its schema."""
    response = await fetcher.get(_request(Request(url), INTROSPECTION, {}))
    return propose_query(read_json(_data_of(response)))
