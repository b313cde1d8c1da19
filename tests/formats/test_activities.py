"""Actors and outboxes after ActivityPub and ActivityStreams 2.0, as several programs fill them."""

from typing import Any

import pytest

from headwater.formats.activities import is_activity_streams, read_activity, read_actor, read_page

CONTEXT = "https://www.w3.org/ns/activitystreams"
PUBLIC = f"{CONTEXT}#Public"


def create(**of: Any) -> dict[str, Any]:
    note = {
        "id": "https://e.org/notes/1",
        "type": "Note",
        "content": "<p>Hello <b>there</b></p>",
        "attributedTo": "https://e.org/users/ann",
        "published": "2026-11-01T10:00:00Z",
        "to": [PUBLIC],
    }
    return {"id": "https://e.org/activities/1", "type": "Create", "to": [PUBLIC], "object": note | of}


def read(activity: Any, *, boosts: bool = False, replies: bool = False) -> Any:
    return read_activity(activity, boosts=boosts, replies=replies)


def test_note_becomes_an_item() -> None:
    item = read(
        create(
            url="https://e.org/@ann/1",
            tag=[{"type": "Hashtag", "name": "#Garden"}, {"type": "Mention", "name": "@ben"}],
            attachment=[
                {"type": "Document", "mediaType": "image/png", "url": "https://e.org/1.png", "name": "A tree"}
            ],
            contentMap={"de": "…"},
            updated="2026-11-02T10:00:00Z",
        )
    )
    assert (item.external_id, item.url, item.title) == (
        "https://e.org/notes/1",
        "https://e.org/@ann/1",
        "Hello there",
    )
    assert (item.author, item.language, item.categories) == ("@ann@e.org", "de", ("Garden",))
    assert (item.image_url, item.enclosures[0].title) == ("https://e.org/1.png", "A tree")
    assert item.updated_at - item.published_at == 86_400


def test_article_and_video_have_titles_and_pages() -> None:
    assert read(create(type="Article", name=" On \n trees ")).title == "On trees"
    item = read(
        create(
            type="Video",
            name="Film",
            url=[
                {"type": "Link", "mediaType": "video/mp4", "href": "https://e.org/1.mp4"},
                {"type": "Link", "mediaType": "text/html", "href": "https://e.org/w/1"},
            ],
            attributedTo=[{"type": "Person", "name": "Ann"}],
        )
    )
    assert (item.title, item.url, item.author) == ("Film", "https://e.org/w/1", "Ann")
    assert [file.media_type for file in item.enclosures] == ["video/mp4"]


@pytest.mark.parametrize(
    "activity",
    [
        None,
        "https://e.org/activities/1",
        {},
        {"type": "Like", "object": "https://e.org/notes/1"},
        {"type": "Create", "object": "https://e.org/notes/1"},
        create(to=["https://e.org/users/ann/followers"], cc=[]) | {"to": []},
        create(inReplyTo="https://e.org/notes/0"),
        {"type": "Announce", "object": "https://other.example/notes/9"},
        create(id=None) | {"id": None},
    ],
)
def test_what_is_not_public_or_not_wanted_is_left_out(activity: Any) -> None:
    assert read(activity) is None


def test_replies_and_boosts_are_taken_when_they_are_wanted() -> None:
    assert read(create(inReplyTo="https://e.org/notes/0"), replies=True).title == "Hello there"
    boost = {
        "id": "b1",
        "type": "Announce",
        "object": "https://other.example/notes/9",
        "published": "2026-11-01T00:00:00Z",
    }
    item = read(boost, boosts=True)
    assert (item.external_id, item.url) == ("b1", "https://other.example/notes/9")
    assert read(boost | {"object": create()["object"]}, boosts=True).title == "Hello there"


def test_warning_is_the_title_and_plain_text_is_not_markup() -> None:
    item = read(create(summary="Spoiler", content="1 < 2", mediaType="text/plain"))
    assert (item.title, item.content) == ("Spoiler", "1 &lt; 2")


def test_address_that_would_run_something_is_not_taken() -> None:
    assert read(create(url="javascript:alert(1)")).url == "https://e.org/notes/1"


def test_actor_and_pages_are_read() -> None:
    actor = {
        "@context": [CONTEXT, {}],
        "id": "https://e.org/users/ann",
        "type": "Person",
        "preferredUsername": "ann",
        "outbox": "https://e.org/users/ann/outbox",
        "icon": {"type": "Image", "url": "https://e.org/ann.png"},
    }
    assert is_activity_streams(actor)
    found = read_actor(actor)
    assert found is not None
    assert (found.name, found.outbox, found.icon) == ("ann", actor["outbox"], "https://e.org/ann.png")
    assert read_actor({"type": "Note"}) is None
    collection = {
        "@context": CONTEXT,
        "type": "OrderedCollection",
        "totalItems": 3,
        "first": "https://e.org/o?page=1",
    }
    assert is_activity_streams(collection)
    assert read_page(collection) == ([], "https://e.org/o?page=1", None)
    page = {"type": "OrderedCollectionPage", "orderedItems": [1], "next": "https://e.org/o?page=2"}
    assert read_page(page) == ([1], None, "https://e.org/o?page=2")
    assert read_page({"type": "Note"}) == ([], None, None)


@pytest.mark.parametrize(
    "document", [None, [], {"type": "Person"}, {"@context": "https://schema.org", "type": "Person"}]
)
def test_other_json_is_not_activitypub(document: Any) -> None:
    assert not is_activity_streams(document)


def test_author_whose_address_is_none_is_left_out() -> None:
    assert read(create(attributedTo="https://[unfinished")).author is None
