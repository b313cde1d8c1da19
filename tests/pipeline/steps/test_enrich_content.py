import os
from pathlib import Path

import psutil
import pytest

from headwater.fetch import Fetcher
from headwater.pipeline.steps.base import PassingStepError, StepError
from headwater.pipeline.steps.enrich_content import EnrichContent
from headwater.services import browser
from tests.origin import Origin
from tests.pipeline.steps.harness import make_context, run_step

needs_browser = pytest.mark.skipif(
    not browser.is_installed() and "CI" not in os.environ, reason="playwright or chromium is missing"
)
SENTENCES = [
    "The river rose for three days before anyone on the lower farms thought to move the cattle.",
    "By the second evening the road to the mill was gone, and the ferry had been tied up since noon.",
    "People who had lived there for forty years said they had never seen the gauge stand so high.",
]
PAGE = f"""<!doctype html><html lang="en"><head><title>The river rose | Valley News</title>
<meta property="og:title" content="The river rose"><meta property="og:site_name" content="Valley News">
<meta property="og:image" content="/lead.jpg"><meta name="author" content="Ann Walker">
<meta property="article:published_time" content="2026-03-04T08:00:00Z"></head><body>
<nav><a href="/">Home</a><a href="/sport">Sport</a><a href="/weather">Weather</a></nav>
<article><h1>The river rose</h1>{"".join(f"<p>{sentence}</p>" for sentence in SENTENCES)}</article>
<footer>Copyright Valley News. All rights reserved. Cookie settings. Subscribe to our newsletter.</footer>
</body></html>"""


async def test_the_text_of_the_page_and_what_it_says_of_itself(
    tmp_path: Path, origin: Origin, fetcher: Fetcher
) -> None:
    item = {"url": origin.route("/river", body=PAGE, content_type="text/html"), "content": "<p>teaser</p>"}
    output = (await run_step(EnrichContent(), make_context(tmp_path, fetcher, item=item))).output
    for sentence in SENTENCES:
        assert sentence in output["text"]
    assert "newsletter" not in output["text"]
    assert "Sport" not in output["text"]
    assert output["title"] == "The river rose"
    assert output["author"] == "Ann Walker"
    assert output["published"] == "2026-03-04"
    assert output["site_name"] == "Valley News"
    assert output["image_url"] == origin.url("/lead.jpg")
    assert output["word_count"] > 40
    assert item["content"] == "<p>teaser</p>"


async def test_other_forms_of_the_text(tmp_path: Path, origin: Origin, fetcher: Fetcher) -> None:
    context = make_context(
        tmp_path, fetcher, item={"url": origin.route("/river", body=PAGE, content_type="text/html")}
    )
    html = (await run_step(EnrichContent(), context, {"format": "html"})).output
    assert f"<p>{SENTENCES[0]}</p>" in html["text"]
    markdown = (await run_step(EnrichContent(), context, {"format": "markdown"})).output
    assert "# The river rose" in markdown["text"]


@pytest.mark.parametrize(
    ("answer", "passing", "words"),
    [
        ({"status": 503, "body": "later"}, True, "503"),
        ({"status": 404, "body": "no"}, False, "404"),
        ({"body": b"%PDF-1.4", "content_type": "application/pdf"}, False, "application/pdf"),
        ({"body": "<html><body><p>Hi.</p></body></html>", "content_type": "text/html"}, False, "no article"),
        ({"body": b"\x00\xff" * 500, "content_type": "text/html"}, False, "no article"),
    ],
)
async def test_what_cannot_be_read_says_why(
    tmp_path: Path, origin: Origin, fetcher: Fetcher, answer: dict[str, object], passing: bool, words: str
) -> None:
    origin.route("/page", **answer)  # type: ignore[arg-type]
    with pytest.raises(StepError, match=words) as caught:
        context = make_context(tmp_path, fetcher, item={"url": origin.url("/page")})
        await run_step(EnrichContent(), context, {"levels": ["page"]})
    assert isinstance(caught.value, PassingStepError) is passing


SCRIPTED = """<!doctype html><html><head><title>App</title></head><body><div id="root"></div>
<script>fetch("/text").then(a => a.text()).then(text => {
document.getElementById("root").innerHTML = "<article><h1>The river rose</h1>" + text + "</article>"; });</script>
<noscript>You need to enable JavaScript to run this app.</noscript></body></html>"""
CONSENT = """<html><head><title>Before you continue</title></head><body><h1>We value your privacy</h1>
<form action="/collectConsent"><button>Accept all cookies</button><button>Reject all</button></form></body></html>"""
BLOCKED = """<html><head><title>Just a moment...</title></head><body><div id="cf-chl-widget"></div>
<script src="/cdn-cgi/challenge-platform/h/b/orchestrate/chl_page/v1"></script></body></html>"""
PAYWALL = """<html><body><script type="application/ld+json">{"isAccessibleForFree": false}</script>
<p>Subscribe to continue reading.</p></body></html>"""


async def test_the_feeds_own_full_text_needs_no_request(
    tmp_path: Path, origin: Origin, fetcher: Fetcher
) -> None:
    content = (
        "".join(f"<p>{sentence}</p>" for sentence in SENTENCES * 8) + '<script>x</script><img src="a.png">'
    )
    item = {"url": origin.url("/river"), "content": content, "language": "en"}
    result = await run_step(EnrichContent(), make_context(tmp_path, fetcher, item=item))
    assert (result.output["level"], result.output["language"]) == ("feed", "en")
    full_text, fingerprint = result.results
    assert (full_text.kind, full_text.format) == ("full_text", "html")
    assert f'<img src="{origin.url("/a.png")}">' in (full_text.body or "")
    assert "script" not in (full_text.body or "")
    assert fingerprint.kind == "fingerprint"
    assert origin.requests == []


@pytest.mark.parametrize("end", ["…", " [...]", "<p>Continue reading</p>"])
async def test_feeds_text_that_is_cut_off_is_not_taken(
    tmp_path: Path, origin: Origin, fetcher: Fetcher, end: str
) -> None:
    origin.route("/river", body=PAGE, content_type="text/html")
    item = {"url": origin.url("/river"), "content": "<p>" + "teaser " * 400 + end + "</p>"}
    result = await run_step(EnrichContent(), make_context(tmp_path, fetcher, item=item))
    assert result.output["level"] == "page"
    assert f"<p>{SENTENCES[0]}</p>" in (result.results[0].body or "")


@needs_browser
async def test_page_made_by_scripts_is_read_in_a_browser(
    tmp_path: Path, origin: Origin, fetcher: Fetcher
) -> None:
    origin.route(
        "/text", body="".join(f"<p>{sentence}</p>" for sentence in SENTENCES), content_type="text/html"
    )
    item = {"url": origin.route("/app", body=SCRIPTED, content_type="text/html"), "content": "<p>teaser</p>"}
    context = make_context(tmp_path, fetcher, item=item)
    for levels in (["feed"], ["feed", "page"]):
        with pytest.raises(StepError) as caught:
            await run_step(EnrichContent(), context, {"levels": levels})
    assert "made by scripts alone" in str(caught.value)
    result = await run_step(EnrichContent(), context)
    assert result.output["level"] == "browser"
    for sentence in SENTENCES:
        assert sentence in result.output["text"]


@needs_browser
async def test_browser_can_reach_only_what_the_guard_allows(tmp_path: Path, origin: Origin) -> None:
    url = origin.route("/app", body=SCRIPTED, content_type="text/html")
    async with Fetcher(user_agent="test", host_spacing_seconds=0.0) as fetcher:
        context = make_context(tmp_path, fetcher, item={"url": url})
        with pytest.raises(StepError, match=r"HEADWATER_ALLOW_HOSTS=127\.0\.0\.1"):
            await run_step(EnrichContent(), context, {"levels": ["browser"]})
    assert origin.requests == []


@needs_browser
async def test_page_in_browser_reaches_nothing_inside_by_any_way(tmp_path: Path) -> None:
    secret = tmp_path / "secret.txt"
    secret.write_text("A secret. " * 100)
    with Origin(host="0.0.0.0") as origin:  # on every address of this machine: one of them is open
        inside, outside = (origin.url("", host=host) for host in ("127.0.0.9", "127.0.0.5"))
        origin.route("/to", status=302, headers=[("Location", f"{inside}/redirected")])
        tries = [f"{inside}/a", f"http://localhost:{origin.port}/b", "/to", secret.as_uri()]
        page = f"""<p id="r"></p><img src="{inside}/img"><iframe src="{inside}/frame"></iframe><img src="/to">
            <iframe src="{secret.as_uri()}"></iframe><script>
            for (const url of {tries}) fetch(url).then(answer => answer.text(), () => "nothing")
                .then(text => document.getElementById("r").append(`(${{text}})`));
            new WebSocket("ws{inside[4:]}/socket");
            navigator.sendBeacon("{inside}/beacon", "x");
            window.open("{inside}/popup");
            </script>"""
        origin.route("/app", body=page, content_type="text/html")
        async with Fetcher(user_agent="test", host_spacing_seconds=0.0, allow=("127.0.0.5",)) as fetcher:
            context = make_context(tmp_path, fetcher)
            shown = await browser.show_page(context, f"{outside}/app", 20.0)
            assert "A secret" not in shown.html
            for address in (f"{outside}/to", secret.as_uri(), "chrome://version"):
                with pytest.raises(StepError):
                    await browser.show_page(context, address, 20.0)
        assert {request.headers["host"] for request in origin.requests} == {f"127.0.0.5:{origin.port}"}
        assert {"/app", "/to"} <= {request.path for request in origin.requests}


@needs_browser
async def test_browser_that_has_crashed_is_started_again(
    tmp_path: Path, origin: Origin, fetcher: Fetcher
) -> None:
    context = make_context(tmp_path, fetcher)
    url = origin.route("/page", body="<p>shown</p>", content_type="text/html")
    await browser.show_page(context, url, 20.0)
    processes = [each for each in psutil.Process().children(recursive=True) if "chrom" in each.name()]
    min(processes, key=lambda each: each.pid).kill()  # the first has started the others
    assert "shown" in (await browser.show_page(context, url, 20.0)).html


@pytest.mark.parametrize(
    ("page", "words"),
    [
        (CONSENT, "it is a consent wall"),
        (BLOCKED, "it is a block page"),
        (PAYWALL, "it is behind a paywall"),
        (SCRIPTED, "it is made by scripts alone"),
    ],
)
async def test_page_that_stands_in_the_way_is_named(
    tmp_path: Path, origin: Origin, fetcher: Fetcher, page: str, words: str
) -> None:
    item = {"url": origin.route("/page", body=page, content_type="text/html")}
    with pytest.raises(StepError, match=words):
        await run_step(
            EnrichContent(), make_context(tmp_path, fetcher, item=item), {"levels": ["feed", "page"]}
        )


async def test_site_that_refuses_is_named_a_block(tmp_path: Path, origin: Origin, fetcher: Fetcher) -> None:
    origin.route("/page", status=403, body="no")
    context = make_context(tmp_path, fetcher, item={"url": origin.url("/page")})
    with pytest.raises(StepError, match=r"403.*block page"):
        await run_step(EnrichContent(), context, {"levels": ["page"]})


async def test_paywall_is_told_beside_the_part_that_is_shown(
    tmp_path: Path, origin: Origin, fetcher: Fetcher
) -> None:
    page = PAGE.replace(
        "</head>", '<script type="application/ld+json">{"isAccessibleForFree":"False"}</script></head>'
    )
    item = {"url": origin.route("/page", body=page, content_type="text/html")}
    result = await run_step(EnrichContent(), make_context(tmp_path, fetcher, item=item))
    assert result.output["obstacle"] == "paywall"
    assert SENTENCES[0] in result.output["text"]


async def test_the_guard_holds(tmp_path: Path, origin: Origin) -> None:
    async with Fetcher(user_agent="test", host_spacing_seconds=0.0) as fetcher:
        context = make_context(tmp_path, fetcher, item={"url": origin.url("/page")})
        with pytest.raises(StepError, match=r"HEADWATER_ALLOW_HOSTS=127\.0\.0\.1"):
            await run_step(EnrichContent(), context, {"levels": ["page"]})
    assert origin.requests == []
