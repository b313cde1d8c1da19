"""Where the items of a JSON document are is found out, as far as anything in it looks like items."""

from typing import Any

import pytest

from headwater.formats.guessing import propose_mapping


@pytest.mark.parametrize(
    ("document", "config"),
    [
        (
            [
                {
                    "id": 1,
                    "title": {"rendered": "One"},
                    "link": "https://e.org/1",
                    "date": "2026-11-01T10:00:00",
                }
            ],
            {"items": "@", "id": "id", "title": "title.rendered", "url": "link", "date": "date"},
        ),
        (
            {
                "ok": True,
                "data": {
                    "posts": [{"uuid": "a", "headline": "One", "href": "/1", "created_at": 1_760_000_000}]
                },
                "links": {"next": "https://e.org/?page=2"},
            },
            {
                "items": "data.posts",
                "id": "uuid",
                "title": "headline",
                "url": "href",
                "date": "created_at",
                "pagination": "cursor",
                "cursor": "links.next",
            },
        ),
        (
            {
                "all-items": [
                    {"name": "One", "author": {"login": "ann"}, "tags": [{"name": "x"}], "when": "?"}
                ]
            },
            {"items": '"all-items"', "title": "name", "author": "author.login", "categories": "tags[].name"},
        ),
        (
            # The longer list of the two that could be meant.
            {
                "tags": [{"name": "a"}],
                "results": [{"name": "b", "url": "https://e.org/b"}, {"name": "c", "url": None}],
            },
            {"items": "results", "title": "name", "url": "url"},
        ),
        (
            {"items": [{"title": "One", "url": "no address", "date": "soon", "image": 7}]},
            {"items": "items", "title": "title"},
        ),
        ({"a": 1}, None),
        ([1, 2], None),
        ([{"id": 1, "value": 2}], None),
        ([], None),
        ("text", None),
        ([{"title": "One"}, 7], None),
    ],
)
def test_mapping_is_proposed(document: Any, config: dict[str, Any] | None) -> None:
    assert propose_mapping(document) == config
