import re
from pathlib import Path
from typing import Any

import pytest

from headwater.fetch import Fetcher
from headwater.pipeline.steps.base import StepError
from headwater.pipeline.steps.summarize_feed import SummarizeFeed
from tests.origin import Origin
from tests.pipeline.steps.harness import make_context, run_step
from tests.pipeline.steps.model_service import ModelService


def items() -> list[dict[str, Any]]:
    return [
        {
            "id": number,
            "title": f"News {number}",
            "url": f"https://a.example/{number}",
            "content": f"<p>Text of <b>{number}</b></p>",
            "source_name": "Valley" if number % 2 else "Hill",
            "published_at": 1_767_225_600 + number * 86_400,
        }
        for number in range(1, 5)
    ]


async def digest(tmp_path: Path, given: Any, fetcher: Fetcher | None = None, **config: Any) -> dict[str, Any]:
    context = make_context(tmp_path, fetcher, runtime={"items": given})
    return (await run_step(SummarizeFeed(), context, config)).output


async def test_a_digest_in_markdown(tmp_path: Path) -> None:
    output = await digest(tmp_path, items(), title="This week", max_items=3)
    assert output["text"] == (
        "# This week\n\n"
        "## Hill\n\n"
        "- [News 4](https://a.example/4) · 2026-01-05\n  Text of 4\n"
        "- [News 2](https://a.example/2) · 2026-01-03\n  Text of 2\n\n"
        "## Valley\n\n"
        "- [News 3](https://a.example/3) · 2026-01-04\n  Text of 3\n"
    )
    assert (output["count"], output["omitted"]) == (3, 1)


async def test_a_digest_in_html_and_json(tmp_path: Path) -> None:
    html = await digest(tmp_path, items(), format="html", group_by="none", title="A & B")
    assert html["text"].startswith('<h1>A &amp; B</h1>\n<ul>\n<li><a href="https://a.example/4">News 4</a>')
    data = await digest(tmp_path, items(), format="json", item_characters=4)
    assert [line["id"] for line in data["items"]] == [4, 3, 2, 1]
    assert data["items"][0]["text"] == "Text…"


@pytest.mark.parametrize("form", ["markdown", "html"])
async def test_what_publishers_write_stays_text(tmp_path: Path, form: str) -> None:
    hostile = {
        "title": "<script>alert(1)</script>](javascript:x) ![i](http://t.example/p.gif)",
        "url": "javascript:alert(1)",
        "content": "[click](http://evil.example) <img src=x onerror=y>",
        "source_name": "# <h1>",
    }
    text = (await digest(tmp_path, [hostile], format=form))["text"]
    assert "<script>" not in text
    assert "<img" not in text
    if form == "markdown":
        assert not re.search(r"(?<!\\)\]\(", text)
    assert "href=" not in text
    tricky = {"title": "ok", "url": 'https://a.example/") onmouseover=("x'}
    text = (await digest(tmp_path, [tricky], format=form))["text"]
    assert '" onmouseover' not in text
    assert ") onmouseover" not in text


async def test_an_introduction_by_a_model(tmp_path: Path, origin: Origin, fetcher: Fetcher) -> None:
    models = ModelService(origin)
    models.answers = ["Mostly *rain*.\n\nAnd more."]
    chat = {"base_url": models.base_url, "model": "tiny-1", "introduction": True}
    output = await digest(tmp_path, items(), fetcher, **chat)
    assert output["introduction"] == "Mostly *rain*.\n\nAnd more."
    assert "Mostly *rain*." in output["text"]
    assert output["usage"]["total_tokens"] == 120
    assert "- News 4 (Hill): Text of 4" in models.asked[0]["messages"][1]["content"]
    many = items() * 100
    await digest(tmp_path, many, fetcher, **chat, max_input_characters=1000)
    assert len(models.asked[1]["messages"][1]["content"]) <= 1000


async def test_nothing_new_ends_the_run(tmp_path: Path) -> None:
    result = await run_step(SummarizeFeed(), make_context(tmp_path, runtime={"items": []}))
    assert result.end_run
    assert result.output["count"] == 0
    with pytest.raises(StepError, match=r"runtime_config\.items is missing"):
        await run_step(SummarizeFeed(), make_context(tmp_path))
