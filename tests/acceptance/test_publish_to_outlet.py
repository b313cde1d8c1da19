"""From a source through a pipeline into a feed of ours, as a user does it."""

import json
from pathlib import Path

from tests.command import Headwater
from tests.origin import Origin

FEED = """<rss version="2.0"><channel><title>One</title>
<item><title>A flood</title><guid>1</guid><link>https://example.org/1</link></item>
<item><title>A poker night</title><guid>2</guid><link>https://example.org/2</link></item></channel></rss>"""


def test_what_a_pipeline_publishes_is_in_the_outlets_feed(
    origin: Origin, tmp_path: Path, database_url: str
) -> None:
    headwater = Headwater(tmp_path, database_url)
    template = {
        "name": "floods",
        "steps": [
            {"step_type": "filter_content", "config": {"include_keywords": ["flood"]}},
            {"step_type": "publish_content", "config": {"target": "outlet", "outlet": "picked"}},
        ],
    }
    (tmp_path / "floods.json").write_text(json.dumps(template))
    refused = headwater.refused("pipeline", "add", "floods.json")
    assert refused == (
        "a step publishes to the outlet picked, but there is none; add it first:"
        " headwater outlet add picked --by-pipelines"
    )
    headwater.ok("outlet", "add", "picked", "--by-pipelines")
    headwater.ok("pipeline", "add", "floods.json")
    headwater.ok("source", "add", origin.route("/feed", body=FEED), "--no-check")
    headwater.ok("pipeline", "attach", "floods", "1")
    headwater.ok("collect")
    runs = headwater.work_until_ended(1, 2)
    assert sorted(run["status"] for run in runs) == ["completed", "skipped"]
    headwater.ok("publish", "picked", "--directory", "site", "--format", "json")
    published = json.loads((tmp_path / "site" / "picked.json").read_text())
    assert [item["title"] for item in published["items"]] == ["A flood"]
    # Once more, by hand: it is in the feed once.
    again = headwater.json("runs", "start", "floods", "1", "--force")["started"]
    headwater.work_until_ended(*again)
    assert headwater.json("publish", "picked", "--directory", "site", "--format", "json") == [
        {"path": "site/picked.json", "written": False}
    ]
