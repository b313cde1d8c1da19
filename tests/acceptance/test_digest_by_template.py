"""A digest by a template, as docs/how-to/steps.md has it: what a cursor reads is what the run is about."""

import json
from pathlib import Path

from tests.acceptance.test_publish_to_outlet import FEED
from tests.command import Headwater
from tests.origin import Origin


def test_a_cursor_feeds_a_template(origin: Origin, tmp_path: Path, database_url: str) -> None:
    headwater = Headwater(tmp_path, database_url)
    headwater.ok("source", "add", origin.route("/feed", body=FEED))
    headwater.ok("cursor", "create", "weekly", "--search", "flood")
    template = {
        "name": "weekly",
        "steps": [{"step_type": "summarize_feed", "config": {"title": "This week"}}],
    }
    (tmp_path / "weekly.json").write_text(json.dumps(template))
    headwater.ok("pipeline", "add", "weekly.json")
    items = [json.loads(line) for line in headwater.ok("cursor", "read", "weekly", "--json").splitlines()]
    (tmp_path / "items.json").write_text(json.dumps(items))
    start = ("runs", "start", "weekly", str(items[-1]["id"]), "--force", "--set", "items=@items.json")
    [run] = headwater.work_until_ended(*headwater.json(*start)["started"])
    assert run["status"] == "completed", run
    text = run["steps"][0]["output_data"]["text"]
    assert text.startswith("# This week\n")
    assert "A flood" in text
    assert "poker" not in text
    headwater.ok("cursor", "ack", "weekly", str(items[-1]["position"]))
    assert headwater.ok("cursor", "read", "weekly", "--json") == ""
    assert "cannot read nowhere.json" in headwater.refused(*start[:-1], "items=@nowhere.json")
