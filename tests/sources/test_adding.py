"""What a user gives as a source, checked and made safe before anything is stored."""

import pytest

from headwater.errors import InputError
from headwater.sources.adding import add_unvisited, read_new_source
from headwater.sources.addresses import read_url, without_userinfo
from headwater.sources.lists import export_opml
from headwater.store.core.database import Store
from tests.clock import NOON


@pytest.mark.parametrize(
    ("given", "url", "config"),
    [
        ("http://one.example/feed", "http://one.example/feed", {}),
        (
            "http://me:hunter2@one.example:81/feed?a=b@c",
            "http://one.example:81/feed?a=b@c",
            {"password": "hunter2"},
        ),
        ("me.example/@ann", "https://me.example/@ann", {}),
        ("https://me:p%40s%3As%2f@one.example/", "https://one.example/", {"password": "p@s:s/"}),
        ("https://m%65:a:b@one.example/", "https://one.example/", {"password": "a:b"}),
        ("https://me:@one.example/", "https://one.example/", {"password": ""}),
    ],
)
def test_credentials_move_from_the_address_to_the_config(
    given: str, url: str, config: dict[str, str]
) -> None:
    source = read_new_source(given)
    assert source.url == url
    assert source.config == ({"user": "me", **config} if config else {})


def test_a_user_name_alone_and_what_the_config_says_already() -> None:
    assert read_new_source("https://me@one.example/").config == {"user": "me"}
    config = {"password": "other", "fetch_interval_minutes": 5}
    assert read_new_source("https://me:hunter2@one.example/", config=config).config == {
        "user": "me",
        **config,
    }
    assert read_new_source("https://@one.example/").config == {}


def test_credentials_are_in_no_name_and_no_export(store: Store) -> None:
    with store.writing() as connection:
        source = add_unvisited(connection, read_new_source("http://me:hunter2@one.example/feed"), NOON)
        assert (source.name, source.url) == ("one.example", "http://one.example/feed")
    exported = b"".join(export_opml(store, NOON))
    assert b"hunter2" not in exported
    assert b"me:" not in exported


@pytest.mark.parametrize(
    "given",
    [
        "ftp://me:hunter2@one.example/",
        "me:hunter2@one.example/feed",
        "http://me:hun/ter2@one.example/",
        "http://me:hunter2@one.example:port/",
        "http://me:hun[ter2@one.example/",
        "http://me:hunter2@one.example/a b",
    ],
)
def test_a_refused_address_is_named_without_its_credentials(given: str) -> None:
    with pytest.raises(InputError, match=r"one\.example.* is not an address of the web") as caught:
        read_url(given)
    assert "ter2" not in str(caught.value)
    assert "ter2" not in without_userinfo(given)


@pytest.mark.parametrize("given", ["http://one.example:99999/feed", "one.example:70000"])
def test_a_port_that_does_not_exist_is_named_as_the_trouble(given: str) -> None:
    with pytest.raises(InputError, match="a port that does not exist; ports go from 1 to 65535"):
        read_url(given)


@pytest.mark.parametrize(
    ("type_name", "config"),
    [
        ("api.hackernews", {"list": "best"}),
        ("api.reddit", {"subreddit": "python", "listing": "top", "period": "week"}),
        ("video.bilibili", {"uid": 1234}),
        ("rss.hub", {"route": "/a/b?limit=5", "instance": "https://hub.example"}),
    ],
)
def test_a_list_of_addresses_and_types_is_enough_to_have_such_sources_again(
    type_name: str, config: dict[str, object]
) -> None:
    wanted = read_new_source(None, type_name, config)
    again = read_new_source(wanted.url, type_name)
    assert (again.url, again.config) == (wanted.url, wanted.config)


@pytest.mark.parametrize(
    ("text", "url"),
    [
        ("one.example/feed", "https://one.example/feed"),
        ("one.example:8080/feed", "http://one.example:8080/feed"),
        ("localhost:3000", "http://localhost:3000"),
        ("one.example:443/feed", "https://one.example:443/feed"),
        ("one.example:8443?a=b", "https://one.example:8443?a=b"),
    ],
)
def test_read_url_of_host_and_port_without_scheme(text: str, url: str) -> None:
    assert read_url(text) == url
