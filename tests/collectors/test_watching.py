"""A watched page brings items when it says something else, says something wanted, or shows another number."""

import pytest

from headwater.errors import FailureKind, InputError, VisitError
from headwater.sources.adding import read_new_source
from tests.collectors.visits import Visits
from tests.origin import Origin

PAGE = """<html><head><title>Lamps</title></head>
<body><main><h1>Lamp</h1><p class=price>{price}</p><p>{said}</p></main></body></html>"""


def show(origin: Origin, price: str = "€ 20", said: str = "Sold out") -> None:
    origin.route("/lamp", body=PAGE.format(price=price, said=said), content_type="text/html")
    origin.route("/robots.txt", status=404)


def watching(origin: Origin, **config: object) -> Visits:
    return Visits(origin, "web.scraper", origin.url("/lamp"), {"watch": True, **config})


async def test_page_is_one_item_that_changes_with_it(origin: Origin) -> None:
    show(origin)
    async with watching(origin) as visits:
        (first,) = (await visits.visit()).items
        again = await visits.visit()
        show(origin, said="Sold out · 12 views · updated 12:04")
        noise = await visits.visit()
        show(origin, said="In stock")
        (changed,) = (await visits.visit()).items
    assert first.title == "Lamps"
    assert again.unchanged
    assert noise.unchanged
    assert noise.items == ()
    assert changed.external_id == first.external_id == origin.url("/lamp")
    assert "In stock" in (changed.content or "")


async def test_ignored_part_is_not_watched(origin: Origin) -> None:
    show(origin)
    async with watching(origin, ignore=[".price"]) as visits:
        await visits.visit()
        show(origin, price="€ 30")
        assert (await visits.visit()).unchanged


async def test_phrase_is_told_each_time_it_begins_to_stand_there(origin: Origin) -> None:
    show(origin)
    async with watching(origin, says=["in stock"]) as visits:
        assert (await visits.visit()).items == ()
        show(origin, said="In  stock")
        (told,) = (await visits.visit()).items
        show(origin, said="In stock today")
        still = await visits.visit()
        show(origin)
        await visits.visit()
    assert told.title == "“in stock”: Lamps"
    assert "In stock" in (told.content or "")
    assert still.items == ()


async def test_number_is_told_when_it_is_low_enough(origin: Origin) -> None:
    show(origin, price="€ 1.299,00")
    async with watching(origin, item=".price", number=True, below=1000) as visits:
        assert (await visits.visit()).items == ()
        show(origin, price="€ 899,00")
        (told,) = (await visits.visit()).items
        show(origin, price="€ 899")
        same = await visits.visit()
    assert told.title == "899 · Lamps"
    assert told.content == "<p><del>1299</del> → <ins>899</ins></p>"
    assert same.items == ()


async def test_value_of_json_is_watched(origin: Origin) -> None:
    origin.route("/robots.txt", status=404)
    origin.route("/lamp", body='{"offer": {"state": "open"}, "at": 1}', content_type="application/json")
    async with watching(origin, value="offer.state") as visits:
        (first,) = (await visits.visit()).items
        origin.route("/lamp", body='{"offer": {"state": "open"}, "at": 2}', content_type="application/json")
        same = await visits.visit()
        origin.route("/lamp", body='{"offer": {"state": "closed"}, "at": 3}', content_type="application/json")
        (changed,) = (await visits.visit()).items
    assert first.content == "<p>open</p>"
    assert same.items == ()
    assert changed.content == "<p>closed</p>"


async def test_part_that_is_gone_is_a_failure(origin: Origin) -> None:
    show(origin)
    async with watching(origin, item=".price") as visits:
        await visits.visit()
        origin.route("/lamp", body="<p>Nothing here</p>", content_type="text/html")
        with pytest.raises(VisitError) as caught:
            await visits.visit()
    assert caught.value.kind is FailureKind.CHANGED_STRUCTURE


async def test_page_for_a_browser_says_what_is_missing_without_one(origin: Origin) -> None:
    show(origin)
    async with watching(origin, browser=True) as visits:
        with pytest.raises(VisitError, match=r"headwater\[browser\]"):
            await visits.visit()


@pytest.mark.parametrize(
    "config",
    [
        {"says": ["x"]},
        {"number": True},
        {"watch": True, "below": 3},
        {"watch": True, "ignore": ["p >"]},
        {"watch": True, "ignore": [":has(p :has(b))"]},
        {"watch": True, "says": [" "]},
        {"watch": True, "value": "a["},
    ],
)
def test_wrong_config_is_refused(config: dict[str, object]) -> None:
    with pytest.raises(InputError):
        read_new_source("https://example.org/", "web.scraper", config)
