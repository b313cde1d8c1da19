"""Queries are made of what a GraphQL schema says of itself."""

from typing import Any

from headwater.formats.graphql import INTROSPECTION, propose_query


def scalar(name: str = "String") -> dict[str, Any]:
    return {"kind": "SCALAR", "name": name, "ofType": None}


def needed(of: dict[str, Any]) -> dict[str, Any]:
    return {"kind": "NON_NULL", "name": None, "ofType": of}


def listed(of: dict[str, Any]) -> dict[str, Any]:
    return {"kind": "LIST", "name": None, "ofType": of}


def thing(name: str) -> dict[str, Any]:
    return {"kind": "OBJECT", "name": name, "ofType": None}


def field(name: str, kind: dict[str, Any], **args: dict[str, Any]) -> dict[str, Any]:
    said = [{"name": key, "defaultValue": None, "type": value} for key, value in args.items()]
    return {"name": name, "args": said, "type": kind}


POST = [
    *(field("id", needed(scalar("ID"))), field("title", scalar()), field("webUrl", scalar())),
    *(
        field("publishedAt", scalar("DateTime")),
        field("author", thing("Person")),
        field("text", scalar(), length=needed(scalar("Int"))),
    ),
]
SCHEMA = {
    "__schema": {
        "queryType": {"name": "Root"},
        "types": [
            {
                "name": "Root",
                "kind": "OBJECT",
                "fields": [
                    field("post", thing("Post"), id=needed(scalar("ID"))),
                    field("search", listed(thing("Post")), text=needed(scalar())),
                    field("numbers", listed(scalar("Int"))),
                    field("latest", needed(listed(needed(thing("Post")))), first=scalar("Int")),
                    field("posts", thing("Posts"), first=scalar("Int"), after=scalar()),
                    field("edges", thing("PostEdges")),
                ],
            },
            {"name": "Post", "kind": "OBJECT", "fields": POST},
            {
                "name": "Posts",
                "fields": [field("nodes", listed(thing("Post"))), field("pageInfo", thing("PageInfo"))],
            },
            {"name": "PostEdges", "fields": [field("edges", listed(thing("PostEdge")))]},
            {"name": "PostEdge", "fields": [field("node", thing("Post"))]},
            {"name": "Int", "kind": "SCALAR", "fields": None},
        ],
    }
}


def test_lists_of_the_schema_become_queries_best_first() -> None:
    paged, *others = propose_query(SCHEMA)
    assert paged.name == "posts"
    assert paged.config == {
        "query": "query($after: String) { posts(first: 50, after: $after)"
        " { nodes { id title webUrl publishedAt } pageInfo { endCursor } } }",
        "items": "posts.nodes",
        "id": "id",
        "title": "title",
        "url": "webUrl",
        "date": "publishedAt",
        "cursor": "posts.pageInfo.endCursor",
    }
    assert {each.name: each.config["query"] for each in others} == {
        "latest": "query { latest(first: 50) { id title webUrl publishedAt } }",
        "edges": "query { edges { edges { node { id title webUrl publishedAt } } } }",
    }
    assert {each.config["items"] for each in others} == {"latest", "edges.edges[].node"}


def test_what_is_no_schema_proposes_nothing() -> None:
    answers: list[Any] = [
        None,
        [],
        {},
        {"__schema": None},
        {"__schema": {"types": [None, {"fields": [None]}]}},
    ]
    for answer in answers:
        assert propose_query(answer) == []


def test_introspection_is_a_whole_query() -> None:
    assert INTROSPECTION.count("{") == INTROSPECTION.count("}")
