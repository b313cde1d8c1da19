"""GraphQL: queries with variables, pages by cursor, what servers say is wrong, and the secrets in all that."""

from typing import Any

import orjson
import pytest

from headwater.errors import FailureKind, InputError
from headwater.sources.adding import read_new_source
from tests.collectors.visits import Visits, told
from tests.fake_services import PAGE, as_json
from tests.origin import Answer, Origin, Received

QUERY = (
    "query($after: String, $team: String) { posts(after: $after, team: $team) { nodes { id title url at } } }"
)
CONFIG: dict[str, Any] = {
    "query": QUERY,
    "items": "posts.nodes",
    "id": "id",
    "title": "title",
    "url": "url",
    "date": "at",
}
PAGING = {"cursor": "posts.pageInfo.endCursor"}


class Server:
    """Posts by GraphQL over HTTP, in pages as Relay's cursor connections have them."""

    def __init__(self, origin: Origin) -> None:
        self.posts: list[int] = []
        self.asked: list[dict[str, Any]] = []
        self.errors: list[dict[str, Any]] | None = None
        self.status = 200
        self.url = origin.route("/graphql", self._answer)

    def _answer(self, request: Received) -> Answer:
        if request.method != "POST" or request.headers.get("content-type") != "application/json":
            return as_json({"errors": [{"message": "POST body missing"}]}, status=400)
        asked = orjson.loads(request.body)
        self.asked.append(asked)
        if self.errors is not None:
            return as_json({"errors": self.errors, "data": None}, status=self.status)
        after = asked.get("variables", {}).get("after")
        posts = sorted(self.posts, reverse=True)
        start = 0 if after is None else posts.index(int(after)) + 1
        page = posts[start : start + 10]
        nodes = [
            {"id": f"p{each}", "title": f"Post {each}", "url": f"/p/{each}", "at": "2026-11-01T00:00:00Z"}
            for each in page
        ]
        more = start + 10 < len(posts)
        info = {"hasNextPage": more, "endCursor": str(page[-1]) if more else None}
        return as_json({"data": {"posts": {"nodes": nodes, "pageInfo": info}}})


async def test_pages_until_one_has_a_known_item(origin: Origin) -> None:
    server = Server(origin)
    server.posts = list(range(25))
    async with Visits(
        origin, "graphql", server.url, {**CONFIG, **PAGING, "variables": {"team": "a"}}
    ) as runs:
        result = await runs.visit()
        assert (len(result.items), result.requests) == (25, 3)
        assert (result.items[0].external_id, result.items[0].url) == ("p24", origin.url("/p/24"))
        assert [each["variables"] for each in server.asked] == [
            {"team": "a"},
            {"team": "a", "after": "15"},
            {"team": "a", "after": "5"},
        ]
        assert await runs.cost() == (0, 1)
        server.posts += range(25, 38)
        assert await runs.cost() == (13, 2)


async def test_limits_are_kept(origin: Origin) -> None:
    server = Server(origin)
    server.posts = list(range(100))
    async with Visits(origin, "graphql", server.url, {**CONFIG, **PAGING, "max_pages": 3}) as runs:
        assert await runs.cost() == (30, 3)
    async with Visits(origin, "graphql", server.url, {**CONFIG, **PAGING, "limit": 15}) as runs:
        assert await runs.cost() == (15, 2)
    async with Visits(origin, "graphql", server.url, CONFIG) as runs:
        assert await runs.cost() == (10, 1)


@pytest.mark.parametrize(
    ("error", "status", "kind"),
    [
        ({"message": 'Cannot query field "x"'}, 400, FailureKind.CHANGED_STRUCTURE),
        ({"message": 'Cannot query field "x"'}, 200, FailureKind.CHANGED_STRUCTURE),
        ({"message": "slow down", "type": "RATE_LIMITED"}, 200, FailureKind.RATE_LIMITED),
        ({"message": "who?", "extensions": {"code": "UNAUTHENTICATED"}}, 200, FailureKind.UNAUTHORIZED),
    ],
)
async def test_what_the_server_says_is_wrong_is_told(
    origin: Origin, error: dict[str, Any], status: int, kind: FailureKind
) -> None:
    server = Server(origin)
    server.errors, server.status = [error], status
    async with Visits(origin, "graphql", server.url, CONFIG) as runs:
        failure = await runs.failure()
    assert failure.kind is kind
    assert failure.http_status == status, "what was sent is not postponed"
    assert str(error["message"]) in str(failure)


async def test_other_answers_and_empty_lists_are_told(origin: Origin) -> None:
    server = Server(origin)
    server.posts = [1]
    async with Visits(origin, "graphql", server.url, CONFIG) as runs:
        await runs.visit()
        server.posts = []
        assert told(await runs.failure())[0] is FailureKind.CHANGED_STRUCTURE
        origin.route("/graphql", body=PAGE, content_type="text/html")
        assert "a web page where JSON was expected" in str(await runs.failure())
        origin.route("/graphql", as_json([1]))
        assert "there is no data" in str(await runs.failure())
        origin.route("/graphql", as_json({"data": {"posts": None}}))
        assert told(await runs.failure())[0] is FailureKind.CHANGED_STRUCTURE
        origin.route("/graphql", status=403)
        assert told(await runs.failure()) == (FailureKind.FORBIDDEN, 403)


async def test_secret_of_a_header_is_in_no_error(origin: Origin) -> None:
    server = Server(origin)
    server.errors = [{"message": "bad key s3cr3t-key"}]
    config = {**CONFIG, "headers": {"X-Api-Key": "${KEY}"}}
    async with Visits(origin, "graphql", server.url, config, secrets={"KEY": "s3cr3t-key"}) as runs:
        failure = await runs.failure()
    assert origin.requests[-1].headers["x-api-key"] == "s3cr3t-key"
    assert "s3cr3t-key" not in str(failure)


@pytest.mark.parametrize(
    "config",
    [
        {},
        {**CONFIG, "query": "mutation { drop }"},
        {**CONFIG, "query": ""},
        {**CONFIG, "items": "[["},
        {"query": QUERY},
    ],
)
def test_config_that_makes_no_sense_is_refused(config: dict[str, Any]) -> None:
    with pytest.raises(InputError):
        read_new_source("https://e.org/graphql", "graphql", config)


async def test_two_queries_of_one_server_are_two_sources_and_the_mark_is_not_sent(origin: Origin) -> None:
    server = Server(origin)
    server.posts = [1]
    urls = {
        read_new_source(f"{server.url}?team=a", "graphql", {**CONFIG, **more}).url
        for more in ({}, {"query": QUERY + " "}, {"variables": {"team": "b"}}, {})
    }
    assert len(urls) == 3
    assert read_new_source(urls.copy().pop(), "graphql", CONFIG).url in urls
    async with Visits(origin, "graphql", f"{server.url}?team=a", CONFIG) as runs:
        assert await runs.cost() == (1, 1)
    assert origin.requests[-1].target == "/graphql?team=a"
