"""Items out of pages by selectors, and selectors out of pages."""

from pathlib import Path

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from headwater.formats.pages.propose import _CHROME_WORDS, propose
from headwater.formats.pages.scrape import Selectors, find_date, find_selector_fault, scrape
from headwater.formats.pages.trending import read_trending
from tests.examples import examples

DATA = Path(__file__).resolve().parents[2] / "data"
URL = "https://one.example/blog/"


def page(name: str) -> bytes:
    return (DATA / "scrape" / f"{name}.html").read_bytes()


def test_every_part_is_read_where_its_selector_says() -> None:
    html = """<base href="/news/"><div class="n"><b>One &amp; <i>only</i></b> <i data-on="2024-05-01">x</i>
      <a href="1?a=b#c">go</a><p>A <a href="more">text</a></p><img data-src="../i.png"></div>
      <div class="n"><b></b></div><a id="older" href="?page=2">older</a>"""
    selectors = Selectors("div.n", "b", "a", "i[data-on]@data-on", "p", "img", "#older")
    found = scrape(html.encode(), selectors, url=URL)
    (item,) = found.items
    assert (item.title, item.url) == ("One & only", "https://one.example/news/1?a=b#c")
    assert item.external_id == item.url
    assert item.published_at == 1714521600.0
    assert item.summary == 'A <a href="https://one.example/news/more">text</a>'
    assert item.image_url == "https://one.example/i.png"
    assert found.next_url == "https://one.example/news/?page=2"


def test_what_has_no_selector_is_taken_from_its_usual_place() -> None:
    html = '<li><h3><a href="/a">A title</a></h3><time datetime="2024-05-01T00:00Z">then</time></li>'
    (item,) = scrape(html.encode(), Selectors("li"), url=URL).items
    assert (item.title, item.url, item.published_at) == ("A title", "https://one.example/a", 1714521600.0)


def test_an_item_that_is_the_link_itself() -> None:
    html = '<a class="card" href="/a"><h3>A title</h3></a>'
    (item,) = scrape(html.encode(), Selectors("a.card", link="a"), url=URL).items
    assert (item.title, item.url) == ("A title", "https://one.example/a")


@pytest.mark.parametrize("href", ["javascript:alert(1)", "data:text/html,x", "mailto:a@b.example", "#"])
def test_only_addresses_of_the_web_are_links(href: str) -> None:
    html = f'<li><a href="{href}">A title</a></li>'
    for selectors in (Selectors("li"), Selectors("li", link="a")):
        for item in scrape(html.encode(), selectors, url=URL).items:
            assert item.url is None or item.url.startswith("https://one.example/")


@pytest.mark.parametrize("next_href", ["/blog/", "#top", "javascript:next()"])
def test_a_next_page_is_another_page(next_href: str) -> None:
    html = f'<li><a href="/a">A</a></li><a class="next" href="{next_href}">next</a>'
    assert scrape(html.encode(), Selectors("li", next="a.next"), url=URL).next_url is None


@pytest.mark.parametrize("selector", ["div..x", "::nope", "[", "a:has("])
def test_what_is_no_selector_is_seen_before_it_is_used(selector: str) -> None:
    assert find_selector_fault(selector) == selector
    assert find_selector_fault("time@datetime") is None
    assert find_selector_fault("@data-id") is None


@pytest.mark.parametrize(
    ("text", "day"),
    [
        ("2024-05-06", "2024-05-06"),
        ("By Ann on May 6, 2024 in Rivers", "2024-05-06"),
        ("Posted 6 May 2024 · 3 min", "2024-05-06"),
        ("发布时间：2024年5月6日 来源：水利局", "2024-05-06"),
        ("[2024/05/06]", "2024-05-06"),
        ("Version 2024 of 12 rivers", None),
        ("3 hours ago", None),
    ],
)
def test_dates_are_found_in_texts(text: str, day: str | None) -> None:
    found = find_date(text)
    assert (found.date().isoformat() if found else None) == day


@pytest.mark.parametrize(
    ("name", "count", "first", "parts"),
    [
        ("blog", 8, "https://one.example/2024/05/post-0", {"date", "summary", "image", "next"}),
        ("table", 15, "https://site0.example/story", set()),
        ("cards", 6, "https://city.example/en/news/1.html", {"date"}),
        ("notices", 12, "https://one.example/blog/t202401.html", {"date"}),
        ("days", 20, "https://one.example/c/1-0", {"summary"}),
    ],
)
def test_selectors_are_proposed_for_what_repeats(name: str, count: int, first: str, parts: set[str]) -> None:
    best = propose(page(name), url=URL)[0]
    assert (len(best.page.items), best.page.items[0].url) == (count, first)
    assert len({item.external_id for item in best.page.items}) == count
    assert all(len(item.title) > 12 for item in best.page.items)
    assert all((item.published_at is not None) == ("date" in parts) for item in best.page.items)
    assert all((item.summary is not None) == ("summary" in parts) for item in best.page.items)
    assert all((item.image_url is not None) == ("image" in parts) for item in best.page.items)
    assert (best.page.next_url is not None) == ("next" in parts)


def test_where_nothing_repeats_nothing_is_proposed() -> None:
    assert propose(page("none"), url=URL) == []
    assert propose(b"", url=URL) == []
    assert propose(b"\x00\xff<<<>>>", url=URL) == []


words = st.text("abcdefghijklmnopqrstuvwxyz", min_size=2, max_size=8)


@given(
    st.integers(4, 15),
    st.sampled_from(("article", "li", "div", "section")),
    st.lists(words, max_size=2),
    st.sampled_from(("h2", "h3", "p", "span")),
    st.integers(0, 4),
    st.booleans(),
    st.integers(1, 4),
)
@settings(max_examples=examples(60), deadline=None)
def test_a_list_is_found_in_whatever_dress(
    count: int, tag: str, classes: list[str], heading: str, depth: int, dated: bool, variants: int
) -> None:
    """Any list of titled links between a navigation and a footer of the same size is found whole."""
    dress = " ".join("c-" + name for name in classes)
    assume(not _CHROME_WORDS.search(dress))  # by which a page says that something is not news: tags, ads
    colours = ("v-red", "v-green", "v-blue", "v-grey")[:variants] if classes and variants > 1 else ("",)
    links = "".join(f'<li><a href="/nav/{n}">A place on this site {n}</a></li>' for n in range(count + 3))
    date = "<time datetime='2024-05-01'>1 May</time>" if dated else ""
    items = "".join(
        f'<{tag} class="{dress} {colours[n % len(colours)]}"><{heading}>'
        f'<a href="/story/{n}">The long story of river {n}</a></{heading}>{date}</{tag}>'
        for n in range(count)
    )
    html = (
        f"<body><nav><ul>{links}</ul></nav>{'<div>' * depth}<div>{items}</div>{'</div>' * depth}"
        f"<footer><ul>{links}</ul></footer></body>"
    )
    best = propose(html.encode(), url=URL)[0]
    assert [item.url for item in best.page.items] == [f"https://one.example/story/{n}" for n in range(count)]
    assert all((item.published_at is not None) == dated for item in best.page.items)


@given(st.binary(max_size=400) | st.text("<>/abli h2='\" ", max_size=400).map(str.encode))
@settings(max_examples=examples(100), deadline=None)
def test_no_page_breaks_it(html: bytes) -> None:
    propose(html, url=URL)
    scrape(html, Selectors("li", "h2", "a", "b", "i", "img", "a"), url=URL)
    read_trending(html, url=URL)


def trending(*names: str, stars: int = 1234, boxes: str = "article") -> bytes:
    rows = "".join(
        f'<{boxes} class="Box-row"><h2 class="h3"><a href="/{name}">\n <span>{name.split("/")[0]} /</span>\n'
        f' {name.split("/")[1]}</a></h2><p class="col-9">What {name} does</p><span itemprop="programmingLanguage">'
        f'Python</span> <a href="/{name}/stargazers">{stars}</a> <span>{stars} stars today</span></{boxes}>'
        for name in names
    )
    return f'<html><body><h1><a href="/features/actions">Actions</a></h1><main>{rows}</main></body></html>'.encode()


@pytest.mark.parametrize("boxes", ["article", "li"])
def test_trending_repositories(boxes: str) -> None:
    found = read_trending(
        trending("ann/river", "bob/lake.js", boxes=boxes), url="https://github.com/trending"
    )
    assert found is not None
    assert [item.title for item in found] == ["ann/river", "bob/lake.js"]
    assert found[0].external_id == found[0].url == "https://github.com/ann/river"
    assert (found[0].summary, found[0].categories) == ("What ann/river does", ("Python",))


def test_stars_do_not_make_a_repository_another_item() -> None:
    one, two = (
        read_trending(trending("ann/river", stars=n), url="https://github.com/trending") for n in (1, 2)
    )
    assert one == two


def test_no_trending_repositories_is_an_answer_and_another_page_is_none() -> None:
    nothing = "<p>It looks like we don’t have any trending repositories for COBOL.</p>"
    assert read_trending(nothing.encode(), url="https://github.com/trending") == ()
    assert read_trending(b"<h1>Verify you are human</h1>", url="https://github.com/trending") is None
