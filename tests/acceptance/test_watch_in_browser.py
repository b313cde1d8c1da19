"""A page that scripts make is watched through a real browser."""

import json
from pathlib import Path

import pytest

from tests.command import Headwater
from tests.origin import Origin

pytestmark = pytest.mark.slow

PAGE = """<html><head><title>Gate</title></head><body><div id=state></div>
<script>fetch('/state').then(a => a.text()).then(t => document.getElementById('state').textContent = t)</script>
</body></html>"""


def test_page_made_by_scripts_is_watched(tmp_path: Path, origin: Origin) -> None:
    origin.route("/robots.txt", status=404)
    origin.route("/gate", body=PAGE, content_type="text/html")
    origin.route("/state", body="The gate is closed until May.", content_type="text/plain")
    headwater = Headwater(tmp_path, None)
    config = ["--config", "watch=true", "--config", "browser=true"]
    headwater.ok("source", "add", origin.url("/gate"), "--type", "web.scraper", *config)
    origin.route("/state", body="The gate is open.", content_type="text/plain")
    headwater.ok("collect", "--source", "1")
    (item,) = json.loads(headwater.ok("items", "--json"))
    assert "The gate is open." in item["content"]
    assert item["version"] == 2
