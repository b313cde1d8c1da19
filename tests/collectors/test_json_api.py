"""Any JSON API: mapped by expressions, paged to what is known, its secrets in nothing that is shown."""

from datetime import UTC, datetime
from typing import Any

import pytest

from headwater.collectors.base import shown_config
from headwater.collectors.json_api import JsonApiConfig, read_moment, with_params
from headwater.errors import FailureKind, InputError
from headwater.sources.adding import read_new_source
from tests.collectors.visits import Visits, told
from tests.fake_services import BASE_TIME, BOOK_CONFIG, CAPTCHA, PAGE, Library, as_json, as_page
from tests.origin import Answer, Origin

SECRET = "s3cr3t/with+signs"
SECRETS = {"LIBRARY": SECRET}


def visits(origin: Origin, library: Library, secrets: dict[str, str] | None = None, **config: Any) -> Visits:
    return Visits(origin, "api.json", library.url, {**BOOK_CONFIG, **config}, secrets=secrets)


async def test_an_entry_becomes_an_item(origin: Origin) -> None:
    library = Library(origin)
    library.add(1)
    async with visits(origin, library) as runs:
        (item,) = (await runs.visit()).items
    assert (item.external_id, item.title, item.author) == ("1", "Book 1", "Ann, Ben")
    assert (item.url, item.image_url) == (origin.url("/book/1"), origin.url("/cover/1.png"))
    assert (item.published_at, item.summary, item.categories) == (
        BASE_TIME + 1.0,
        "<p>Good.</p>",
        ("new", "red"),
    )


@pytest.mark.parametrize(
    ("paging", "sent"),
    [
        ({"pagination": "page"}, ["/books", "/books?page=2", "/books?page=3"]),
        ({"pagination": "offset"}, ["/books", "/books?offset=10", "/books?offset=20"]),
        ({"pagination": "cursor", "cursor": "next"}, ["/books", "/books?cursor=10", "/books?cursor=20"]),
        ({"pagination": "cursor", "cursor": "next_url"}, ["/books", "/books?cursor=10", "/books?cursor=20"]),
    ],
)
async def test_pages_until_one_has_a_known_item(
    origin: Origin, paging: dict[str, Any], sent: list[str]
) -> None:
    library = Library(origin)
    library.add(*range(25))
    async with visits(origin, library, **paging) as runs:
        assert (await runs.visit()).requests >= 3
        assert len(runs.known) == 25
        assert [request.target for request in origin.requests][:3] == sent
        assert await runs.cost() == (0, 1)
        library.add(25)
        assert await runs.cost() == (1, 1)
        library.add(*range(26, 38))
        assert await runs.cost() == (12, 2)


async def test_limits_are_kept(origin: Origin) -> None:
    library = Library(origin)
    library.add(*range(100))
    async with visits(origin, library, pagination="page", max_pages=3) as runs:
        assert await runs.cost() == (30, 3)
    async with visits(origin, library, pagination="page", limit=15) as runs:
        assert await runs.cost() == (15, 2)


async def test_an_api_that_gives_the_same_page_for_ever_is_left(origin: Origin) -> None:
    library = Library(origin)
    library.add(*range(5))
    async with visits(origin, library, pagination="page", page_param="p", max_pages=50) as runs:
        assert await runs.cost() == (5, 2)


async def test_an_unchanged_answer_is_one_request_and_no_reading(origin: Origin) -> None:
    library = Library(origin)
    library.add(*range(25))
    library.bad_day = as_json({"data": {"books": library.books}}, etag='"1"')
    async with visits(origin, library) as runs:
        await runs.visit()
        result = await runs.visit()
    assert (result.unchanged, result.http_status, result.requests) == (True, 304, 1)


@pytest.mark.parametrize(
    "config",
    [
        {"headers": {"X-Key": "${LIBRARY}"}},
        {"params": {"api_key": "${LIBRARY}"}},
        {"params": {"api_key": "${HEADWATER_SECRET_LIBRARY}"}},
    ],
)
async def test_a_secret_is_filled_in_for_the_request_alone(origin: Origin, config: dict[str, Any]) -> None:
    library = Library(origin, key=SECRET)
    library.add(1)
    async with visits(origin, library, SECRETS, **config) as runs:
        result = await runs.visit()
        assert len(result.items) == 1
        assert SECRET not in str(runs.source)
        assert SECRET not in str(shown_config(runs.source.config, JsonApiConfig))
        for answer in (Answer(status=404), as_page(PAGE), as_json({}), Answer(status=301, location="/x")):
            library.bad_day = answer
            error = await runs.failure()
            for spelling in (SECRET, "s3cr3t%2Fwith%2Bsigns", "s3cr3t"):
                assert spelling not in str(error)
                assert spelling not in repr(error.values)


async def test_a_secret_the_api_repeats_is_not_stored(origin: Origin) -> None:
    library = Library(origin, key=SECRET)
    library.add(1, link="/book/1?api_key=s3cr3t%2Fwith%2Bsigns")
    params = {"api_key": "${LIBRARY}", "format": "book"}
    async with visits(origin, library, SECRETS, id=None, params=params) as runs:
        (item,) = (await runs.visit()).items
    assert item.url == item.external_id == origin.url("/book/1?api_key=***"), (
        "and only the secret is taken out"
    )


async def test_a_parameter_of_any_name_is_in_no_error(origin: Origin) -> None:
    library = Library(origin)
    library.bad_day = Answer(status=404)
    async with visits(origin, library, params={"k": "hush hush", "format": "books"}) as runs:
        error = await runs.failure()
    assert "hush" not in str(error)
    assert str(error).startswith(f"{library.url}?k=***&format=***:")


async def test_a_missing_variable_is_named(origin: Origin) -> None:
    library = Library(origin, key=SECRET)
    async with visits(origin, library, {}, headers={"X-Key": "Bearer ${HEADWATER_DATABASE_URL}"}) as runs:
        error = await runs.failure()
    assert told(error) == (FailureKind.UNAUTHORIZED, None)
    assert "HEADWATER_SECRET_HEADWATER_DATABASE_URL in headers.X-Key" in str(error)
    assert origin.requests == []


@pytest.mark.parametrize(
    ("answer", "kind", "words"),
    [
        (as_page(PAGE), FailureKind.NOT_A_FEED, "web page where JSON was expected"),
        (as_page(CAPTCHA), FailureKind.FORBIDDEN, "captcha"),
        (as_json({"data": {"volumes": []}}), FailureKind.CHANGED_STRUCTURE, "a list at items = data.books"),
        (as_json({"data": {"books": {"1": {}}}}), FailureKind.CHANGED_STRUCTURE, "items = data.books"),
        (
            as_json({"data": {"books": [{"isbn": 1, "heading": "x"}]}}),
            FailureKind.CHANGED_STRUCTURE,
            "title = name",
        ),
        (
            as_json({"data": {"books": [{"isbn": 1, "name": "x", "link": "/1", "released": "soon"}]}}),
            FailureKind.CHANGED_STRUCTURE,
            "date = released",
        ),
        (as_json({"data": {"books": [{}, {}]}}), FailureKind.CHANGED_STRUCTURE, "id = isbn"),
        (as_json({"data": {"books": []}}), FailureKind.CHANGED_STRUCTURE, "lists nothing, where it used to"),
        (Answer("{", content_type="application/json"), FailureKind.MALFORMED, "not JSON"),
        (Answer(status=429, headers={"Retry-After": "60"}), FailureKind.RATE_LIMITED, "429"),
        (Answer(status=401), FailureKind.UNAUTHORIZED, "401"),
    ],
)
async def test_bad_days(origin: Origin, answer: Answer, kind: FailureKind, words: str) -> None:
    library = Library(origin)
    library.add(1)
    async with visits(origin, library) as runs:
        await runs.visit()
        library.bad_day = answer
        error = await runs.failure()
        assert error.kind is kind
        assert words in str(error)


async def test_empty_is_no_alarm_where_it_is_normal(origin: Origin) -> None:
    library = Library(origin)
    library.add(1)
    async with visits(origin, library, may_be_empty=True) as runs:
        await runs.visit()
        library.books.clear()
        assert await runs.cost() == (0, 1)


async def test_an_entry_that_cannot_be_told_apart_is_left_out(origin: Origin) -> None:
    library = Library(origin)
    library.add(1)
    library.books += [{"blurb": "nameless"}, None, "text"]  # type: ignore[list-item]
    async with visits(origin, library) as runs:
        assert await runs.cost() == (1, 1)


async def test_an_expression_that_does_not_fit_is_named(origin: Origin) -> None:
    library = Library(origin)
    library.add(1)
    async with visits(origin, library, title="join('-', isbn)") as runs:
        error = await runs.failure()
    assert error.kind is FailureKind.CHANGED_STRUCTURE
    assert "title = join('-', isbn)" in str(error)


async def test_headers_follow_to_no_other_host(origin: Origin) -> None:
    library = Library(origin)
    library.bad_day = as_json({"data": {"books": [library.book(1)]}, "next": "http://evil.example/2"})
    async with visits(origin, library, pagination="cursor", cursor="next") as runs:
        assert "another host" in str(await runs.failure())


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("2023-11-14T22:13:20Z", 1_700_000_000),
        ("Tue, 14 Nov 2023 22:13:20 GMT", 1_700_000_000),
        (1_700_000_000, 1_700_000_000),
        (1_700_000_000.9, 1_700_000_000),
        (1_700_000_000_123, 1_700_000_000),
        ("1700000000", 1_700_000_000),
        ("1700000000123", 1_700_000_000),
        (1_700_000_000_123_456, 1_700_000_000),
    ],
)
def test_dates_in_every_form(value: Any, seconds: int) -> None:
    assert read_moment(value) == datetime.fromtimestamp(seconds, UTC)


@pytest.mark.parametrize("value", [None, True, [], {}, "soon", "", -5, 0, -(10**15), 10**11 - 1, 1e300])
def test_what_is_no_date(value: Any) -> None:
    assert read_moment(value) is None


def test_parameters_take_the_place_of_those_in_the_address() -> None:
    assert with_params("http://x.example/?a=1&b=2", {"b": "3 4"}) == "http://x.example/?a=1&b=3+4"
    assert with_params("http://x.example/?a=%20", {}) == "http://x.example/?a=%20"


@pytest.mark.parametrize(
    ("config", "words"),
    [
        ({}, "at least one of id, title and url"),
        ({"title": "a["}, "not a JMESPath expression"),
        ({"title": "t", "pagination": "cursor"}, "need each other"),
        ({"title": "t", "cursor": "next"}, "need each other"),
        ({"title": "t", "limit": 0}, "limit = 0 is wrong"),
        ({"title": "t", "body": "x"}, "there is no key body"),
    ],
)
def test_wrong_configs_are_told(config: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError) as caught:
        read_new_source("http://x.example/", "api.json", config)
    assert words in str(caught.value)


def test_a_wrong_parameter_is_told_without_its_value() -> None:
    with pytest.raises(InputError) as caught:
        read_new_source("http://x.example/", "api.json", {"title": "t", "params": {"key": ["hush"]}})
    assert "hush" not in str(caught.value)


@pytest.mark.timeout(60)
async def test_an_expression_that_would_take_for_ever_is_an_error(origin: Origin) -> None:
    url = origin.route("/api", body=b'[{"id": 1}]', content_type="application/json")
    async with Visits(origin, "api.json", url, {"items": "[].[@, @][]" * 60, "id": "id"}) as runs:
        error = await runs.failure()
        assert told(error) == (FailureKind.CHANGED_STRUCTURE, None)
        assert "steps" in str(error)


async def test_address_that_cannot_be_completed_is_no_failure(origin: Origin) -> None:
    library = Library(origin)
    library.add(1, link="https://[unfinished")
    async with visits(origin, library) as runs:
        assert len((await runs.visit()).items) == 1
