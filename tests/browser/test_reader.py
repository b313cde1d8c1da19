"""The reader: by mouse, by keyboard alone, by touch, without scripts and without a network."""

import itertools
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, CDPSession, Page, expect

from headwater.language import Language
from tests.browser.conftest import in_language, opened, running
from tests.browser.reading_data import furnish_reading, picture, waves
from tests.origin import Answer, Origin

FIRST, SECOND, THIRD = (
    "The parish that let the sea wall go",
    "旧邮局的灯又亮了，信箱里换了东西",
    "A year of reading the meter by radio",
)
PHONE: dict[str, Any] = {"viewport": {"width": 390, "height": 844}, "has_touch": True, "is_mobile": True}


@pytest.fixture(scope="module")
def reader(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a Headwater with feeds to read, whose pictures a publisher on loopback has."""
    directory = tmp_path_factory.mktemp("reader")
    with Origin() as publisher:
        for number in range(1, 7):
            answer = Answer(body=picture(number), content_type="image/svg+xml")
            publisher.route(f"/{number}.svg", answer)
        publisher.route("/waves.wav", Answer(body=waves(), content_type="audio/wav"))
        furnish_reading(directory, publisher.url("").rstrip("/"), extra=60)
        with running(
            directory,
            "serve",
            HEADWATER_DATABASE_URL=f"sqlite:///{directory / 'headwater.db'}",
            HEADWATER_PIPELINE_CONCURRENCY="0",
            HEADWATER_ALLOW_HOSTS="127.0.0.1",
        ) as address:
            yield address


@pytest.fixture
def reading(page: Page, reader: str) -> Page:
    page.goto(f"{reader}/read?view=all")
    expect(page.locator("[data-item]").first).to_be_visible()
    return page


def row(page: Page, title: str) -> Any:
    return page.locator("[data-item]", has_text=title)


def heading(page: Page) -> Any:
    return page.locator("#article h1")


def unread(page: Page) -> int:
    return int(page.locator("#tree [data-count=unread] .n").inner_text())


def test_mouse_opens_marks_stars_tags_and_undoes(reading: Page) -> None:
    before = unread(reading)
    row(reading, THIRD).click()
    expect(heading(reading)).to_have_text(THIRD)
    expect(row(reading, THIRD)).not_to_have_class("it un")
    assert unread(reading) == before - 1
    reading.get_by_role("button", name="Mark as unread").click()
    expect(row(reading, THIRD)).to_have_class("it un")
    assert unread(reading) == before
    reading.get_by_role("button", name="Add star").click()
    expect(row(reading, THIRD)).to_have_attribute("data-starred", "yes")
    reading.locator("#toasts").get_by_role("button", name="Undo").click()
    expect(row(reading, THIRD)).to_have_attribute("data-starred", "no")
    reading.locator("summary[aria-label=Tags]").click()
    reading.get_by_label("Tags, separated by commas").fill("radio, 无线电")
    reading.locator("[data-tags]").get_by_role("button", name="Save").click()
    expect(reading.locator("[data-tag-list]")).to_contain_text("无线电")
    reading.reload()
    expect(reading.locator("#tree")).to_contain_text("无线电")
    expect(row(reading, THIRD)).to_contain_text("radio")


def test_texts_of_pipelines_are_chosen_and_the_summary_is_hidden(reading: Page) -> None:
    row(reading, FIRST).click()
    expect(reading.locator("#summary")).to_contain_text("eleven months")
    expect(reading.locator("[data-version]")).to_have_attribute("data-version", "full_text")
    reading.get_by_role("link", name="中文", exact=True).click()
    expect(heading(reading)).to_have_text("放手海堤的教区")
    expect(reading.locator(".prose").first).to_have_attribute("lang", "zh")
    reading.get_by_role("button", name="Hide the summary").click()
    expect(reading.locator("#summary")).to_be_hidden()
    reading.keyboard.press("y")
    expect(reading.locator("#summary")).to_be_visible()


def test_pictures_and_sound_come_from_this_site_alone(reading: Page, reader: str) -> None:
    asked: list[str] = []
    reading.on("request", lambda request: asked.append(request.url))
    row(reading, "Episode 12").click()
    expect(reading.locator("audio")).to_be_visible()
    length = reading.locator("audio").evaluate(
        "each => new Promise((done) => { each.onloadedmetadata = () => done(each.duration); each.load();"
        " each.preload = 'metadata'; })"
    )
    assert 19 < length < 21
    row(reading, FIRST).click()
    shown = reading.locator(".prose img").first
    expect(shown).to_be_visible()
    shown.scroll_into_view_if_needed()
    reading.wait_for_function("() => document.querySelector('.prose img').naturalWidth === 640")
    assert all(url.startswith((reader, "data:")) for url in asked)


def test_sound_goes_on_from_where_it_was(reading: Page) -> None:
    row(reading, "Episode 12").click()
    expect(reading.locator("audio")).to_be_visible()
    key = reading.locator("[data-player]").get_attribute("data-player")
    reading.evaluate("key => localStorage.setItem('headwater-positions', JSON.stringify({[key]: 3}))", key)
    reading.reload()
    at = reading.locator("audio").evaluate(
        "each => new Promise((done) => { each.onseeked = () => done(each.currentTime); each.preload = 'metadata';"
        " each.load(); })"
    )
    assert at == 3
    reading.get_by_role("button", name="Speed").click()
    assert reading.locator("audio").evaluate("each => each.playbackRate") == 1.25


def test_keyboard_alone_reads_marks_and_goes_everywhere(reading: Page) -> None:
    keys = reading.keyboard
    keys.press("j")
    expect(heading(reading)).to_have_text(FIRST)
    keys.press("j")
    expect(heading(reading)).to_have_text(SECOND)
    keys.press("k")
    expect(heading(reading)).to_have_text(FIRST)
    keys.press("m")
    expect(row(reading, FIRST)).to_have_class("it un")
    keys.press("l")
    expect(row(reading, FIRST)).to_have_attribute("data-later", "yes")
    keys.press("z")
    expect(row(reading, FIRST)).to_have_attribute("data-later", "no")
    keys.press("m")
    expect(row(reading, FIRST)).to_have_class("it")
    keys.press("f")
    expect(reading.locator("[data-version]")).to_have_attribute("data-version", "feed")
    keys.press("Shift+J")
    expect(heading(reading)).to_have_text(SECOND)
    keys.press("t")
    expect(reading.get_by_label("Tags, separated by commas")).to_be_focused()
    keys.press("Escape")
    keys.press("Escape")
    keys.press("?")
    expect(reading.locator("#keys")).to_be_visible()
    keys.press("?")
    expect(reading.locator("#keys")).to_be_hidden()
    keys.press("/")
    expect(reading.locator("#tree input[type=search]")).to_be_focused()
    keys.type("binoculars")
    keys.press("Enter")
    reading.wait_for_url("**search=binoculars**")
    expect(reading.locator("#entries mark").first).to_have_text("binoculars")
    keys.press("j")
    expect(reading.locator(".prose mark").first).to_have_text("binoculars")
    keys.press("g")
    keys.press("s")
    reading.wait_for_url("**view=starred**")


def test_marking_all_as_read_is_undone(page: Page, reader: str) -> None:
    page.goto(f"{reader}/read")
    folder = page.locator("#tree .folder", has_text="Engineering")
    folder.click()
    page.wait_for_url("**folder=**")
    count = page.locator("#entries .un").count()
    assert count > 0
    page.keyboard.press("Shift+A")
    expect(page.locator("#entries .un")).to_have_count(0)
    expect(page.locator("#tree .folder", has_text="Engineering").locator(".n")).to_be_hidden()
    page.keyboard.press("z")
    expect(page.locator("#entries .un")).to_have_count(count)
    page.reload()
    expect(page.locator("#entries .un")).to_have_count(count)


def test_palette_finds_a_feed_by_a_few_letters(reading: Page) -> None:
    reading.keyboard.press("Control+k")
    reading.get_by_role("combobox").fill("lanast")
    reading.keyboard.press("Enter")
    reading.wait_for_url("**feed=**")
    expect(reading.locator("#list h1")).to_contain_text("Lantern Astronomy")


def test_single_keys_can_be_turned_off(reading: Page) -> None:
    reading.keyboard.press("?")
    reading.locator("[data-keys-on]").uncheck()
    reading.keyboard.press("Escape")
    reading.keyboard.press("j")
    expect(heading(reading)).to_have_count(0)
    reading.keyboard.press("Control+k")
    expect(reading.locator("#palette")).to_be_visible()
    reading.keyboard.press("Escape")
    reading.evaluate("document.querySelector('#keys').showModal()")
    reading.locator("[data-keys-on]").check()


def test_next_article_is_there_within_100_ms(reading: Page) -> None:
    reading.keyboard.press("j")
    expect(heading(reading)).to_have_text(FIRST)
    took = []
    for _ in range(5):
        reading.wait_for_timeout(600)  # in which the next one is fetched ahead
        took.append(
            reading.evaluate(
                """async () => {
                    const pane = document.getElementById("article");
                    const begin = performance.now();
                    const changed = new Promise((done) =>
                        new MutationObserver(done).observe(pane, { childList: true }));
                    document.body.dispatchEvent(new KeyboardEvent("keydown", { key: "j", bubbles: true }));
                    await changed;
                    return performance.now() - begin;
                }"""
            )
        )
    assert sorted(took)[1] < 100  # on a machine that does other things too


def test_layout_stands_still_after_loading(chromium: Browser, reader: str) -> None:
    with opened(chromium) as page:
        page.add_init_script(
            "window.shift = 0; new PerformanceObserver((list) => { for (const each of list.getEntries())"
            " if (!each.hadRecentInput) window.shift += each.value; }).observe({type: 'layout-shift', buffered: true})"
        )
        page.goto(f"{reader}/read?view=all")
        row(page, FIRST).click()
        expect(heading(page)).to_have_text(FIRST)
        page.wait_for_timeout(1_000)
        assert page.evaluate("window.shift") <= 0.05


def swipe(session: CDPSession, begin: tuple[float, float], by: float) -> None:
    x, y = begin
    session.send("Input.dispatchTouchEvent", {"type": "touchStart", "touchPoints": [{"x": x, "y": y}]})
    for step in range(1, 6):
        point = {"x": x + by * step / 5, "y": y}
        session.send("Input.dispatchTouchEvent", {"type": "touchMove", "touchPoints": [point]})
    session.send("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})


def test_phone_opens_goes_back_and_takes_gestures(chromium: Browser, reader: str) -> None:
    with opened(chromium, **PHONE) as page:
        page.goto(f"{reader}/read?view=all")
        session = page.context.new_cdp_session(page)
        first = page.locator("[data-item]").nth(3)
        number = first.get_attribute("data-item")
        box = first.bounding_box()
        assert box is not None
        middle = (box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
        starred = first.get_attribute("data-starred")
        swipe(session, middle, -120)
        expect(first).not_to_have_attribute("data-starred", str(starred))
        page.locator("#toasts").get_by_role("button", name="Undo").tap()
        expect(first).to_have_attribute("data-starred", str(starred))
        was_unread = "un" in str(first.get_attribute("class")).split()
        swipe(session, middle, 120)
        expect(first).to_have_class("it" if was_unread else "it un")
        first.tap()
        article = page.locator("[data-article]")
        expect(article).to_have_attribute("data-article", str(number))
        expect(page.locator("#list")).to_be_hidden()
        swipe(session, (195, 500), -140)
        expect(article).not_to_have_attribute("data-article", str(number))
        page.get_by_role("link", name="Back to the list").tap()
        expect(page.locator("#list")).to_be_visible()
        page.get_by_role("button", name="Folders").tap()
        expect(page.locator("#tree")).to_be_visible()


# Whether nothing was fetched for two seconds: what is under way when the network goes fails.
LOADED_AHEAD = """() => {
  const count = performance.getEntriesByType("resource").length;
  if (window.counted !== count) [window.counted, window.countedAt] = [count, Date.now()];
  return Date.now() - window.countedAt > 2000;
}"""


def test_what_was_loaded_is_read_and_marked_offline(chromium: Browser, reader: str) -> None:
    with opened(chromium) as page:
        page.goto(f"{reader}/read?view=all")
        page.evaluate("navigator.serviceWorker.ready.then(() => true)")
        page.reload()  # now through the service worker
        page.wait_for_function("() => navigator.serviceWorker.controller !== null")
        page.keyboard.press("j")
        expect(heading(page)).to_have_text(FIRST)
        page.wait_for_function(LOADED_AHEAD)
        page.context.set_offline(True)
        page.reload()
        expect(page.locator("[data-item]").first).to_be_visible()
        expect(page.locator("[data-offline]")).to_be_visible()
        page.keyboard.press("j")
        expect(heading(page)).to_have_text(SECOND)
        was = row(page, SECOND).get_attribute("data-starred")
        page.keyboard.press("s")
        expect(row(page, SECOND)).not_to_have_attribute("data-starred", str(was))
        page.context.set_offline(False)
        page.wait_for_function("() => localStorage.getItem('headwater-changes-1') === '[]'")
        page.reload()
        expect(row(page, SECOND)).not_to_have_attribute("data-starred", str(was))
        page.locator("[data-toggle=is_starred]").first.click()
        expect(row(page, SECOND)).to_have_attribute("data-starred", str(was))


def test_list_and_article_work_without_scripts(chromium: Browser, reader: str) -> None:
    with opened(chromium, java_script_enabled=False) as page:
        page.goto(f"{reader}/read?view=all")
        page.get_by_role("link", name=THIRD).click()
        expect(heading(page)).to_have_text(THIRD)
        page.get_by_role("button", name="Add star").first.click()
        expect(page.get_by_role("button", name="Remove star").first).to_be_visible()
        page.get_by_role("button", name="Remove star").first.click()
        page.get_by_role("link", name="Next", exact=False).last.click()
        expect(heading(page)).not_to_have_text(THIRD)


def test_arabic_is_set_from_right_to_left(reading: Page) -> None:
    row(reading, "عودة الصيادين").click()
    expect(reading.locator(".prose").first).to_have_attribute("dir", "rtl")


def test_app_password_is_made_in_one_click(page: Page, reader: str) -> None:
    page.goto(f"{reader}/connect")
    page.get_by_role("button", name="Make an app password").click()
    expect(page.get_by_text("Copy the password now")).to_be_visible()
    expect(page.get_by_text("not used yet")).to_be_visible()
    page.get_by_role("button", name="Disconnect").first.click()
    expect(page.get_by_role("status")).to_contain_text("removed")


PATHS = ("/read?view=all", "/read?search=wall", "/read/feeds", "/read/add", "/bookmarks", "/connect")


@pytest.mark.parametrize(("scheme", "language"), [("light", "en"), ("dark", "zh")])
def test_axe_finds_nothing(chromium: Browser, reader: str, axe: str, scheme: str, language: Language) -> None:
    t = in_language(language)
    found: list[Any] = []
    for width, path in itertools.product((1280, 390), PATHS):
        with opened(
            chromium, language, color_scheme=scheme, viewport={"width": width, "height": 844}
        ) as page:
            page.goto(reader + path)
            found += problems(page, axe)
            if path == PATHS[0]:
                row(page, FIRST).click()
                expect(page.locator("#article h1")).to_have_text(FIRST)
                found += problems(page, axe)
                page.keyboard.press("?")
                expect(page.get_by_role("heading", name=t("Keyboard"))).to_be_visible()
                found += problems(page, axe)
    assert found == []


def problems(page: Page, axe: str) -> list[Any]:
    page.evaluate(axe)
    result = page.evaluate("axe.run({resultTypes: ['violations']})")
    return [
        (page.url, each["id"], [node["html"][:160] for node in each["nodes"]][:3])
        for each in result["violations"]
    ]


def test_nothing_scrolls_sideways_at_320_px(chromium: Browser, reader: str) -> None:
    with opened(chromium, viewport={"width": 320, "height": 640}) as page:
        wide = []
        for path in PATHS:
            page.goto(reader + path)
            if page.evaluate("document.documentElement.scrollWidth") > 320:
                wide.append(path)
        page.goto(f"{reader}/read?view=all")
        row(page, FIRST).click()
        expect(heading(page)).to_have_text(FIRST)
        if page.evaluate("document.documentElement.scrollWidth") > 320:
            wide.append("article")
    assert wide == []
