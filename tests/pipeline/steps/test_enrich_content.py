from pathlib import Path

import pytest

from headwater.fetch import Fetcher
from headwater.pipeline.steps.base import PassingStepError, StepError
from headwater.pipeline.steps.enrich_content import EnrichContent
from tests.origin import Origin
from tests.pipeline.steps.harness import make_context, run_step

SENTENCES = [
    "The river rose for three days before anybody on the lower farms thought to move the cattle.",
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
        await run_step(EnrichContent(), make_context(tmp_path, fetcher, item={"url": origin.url("/page")}))
    assert isinstance(caught.value, PassingStepError) is passing


async def test_the_guard_holds(tmp_path: Path, origin: Origin) -> None:
    async with Fetcher(user_agent="test", host_spacing_seconds=0.0) as fetcher:
        context = make_context(tmp_path, fetcher, item={"url": origin.url("/page")})
        with pytest.raises(StepError, match=r"HEADWATER_ALLOW_HOSTS=127\.0\.0\.1"):
            await run_step(EnrichContent(), context)
    assert origin.requests == []
