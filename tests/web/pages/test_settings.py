"""Keys, intervals and settings on their page."""

import re
from dataclasses import replace

import pytest
from starlette.testclient import TestClient

from headwater import __version__
from headwater.config import Settings
from headwater.demo.run import demo_settings
from headwater.errors import Text
from headwater.pipeline.plugins import ListedPlugin
from headwater.settings import GROUPS, SETTINGS
from headwater.store.collecting.sources import add_source
from headwater.store.core.database import Store
from headwater.store.core.settings import interval_settings
from headwater.store.people.keys import add_key, find_key
from headwater.web.app import create_app
from headwater.web.pages import settings
from tests.clock import NOON
from tests.web.pages.conftest import Visitor
from tests.web.pages.test_visitor import sign_in, token_in


def test_a_key_is_shown_once_and_can_be_revoked(visitor: Visitor, store: Store) -> None:
    answer = visitor.send("/settings/keys", name="<i>mine", scope=["read", "refresh"])
    found = re.search(r'id="new-key">(hw_[^<]+)<', answer.text)
    assert found
    with store.reading() as connection:
        key = find_key(connection, found[1])
    assert key is not None
    assert key.scopes == ("read", "refresh")
    page = visitor.see("/settings")
    assert found[1] not in page
    assert "&lt;i&gt;mine" in page
    assert "is revoked" in visitor.send(f"/settings/keys/{key.id}/revoke").text
    with store.reading() as connection:
        assert find_key(connection, found[1]) is None
    refused = visitor.send("/settings/keys", name="", scope=["read"])
    assert (refused.status_code, "needs a name" in refused.text) == (400, True)


def test_an_interval_is_set_and_taken_back(visitor: Visitor, store: Store) -> None:
    visitor.send("/settings/intervals", type="rss", minutes="90")
    with store.reading() as connection:
        assert interval_settings(connection) == {"rss.feed": 90.0}
    assert 'value="90"' in visitor.see("/settings")
    for wrong in ("0", "-1", "soon", "1e9", "nan"):
        assert visitor.send("/settings/intervals", type="rss", minutes=wrong).status_code == 400
    visitor.send("/settings/intervals", type="rss", minutes="")
    with store.reading() as connection:
        assert interval_settings(connection) == {}


def test_settings_are_shown_in_words(store: Store, settings: Settings) -> None:
    changed = demo_settings(replace(settings, allow_hosts=()), settings.data_dir)
    app = create_app(store, replace(changed, allow_hosts=("10.0.0.0/8", "127.0.0.1")))
    with TestClient(app, base_url="http://127.0.0.1:8626") as browser:
        page = browser.get("/settings").text
    rows = {
        name: more
        for name, *more in re.findall(
            r'<code class="sub">(\w+)</code></th><td><b>(.*?)</b></td><td><span class="\w+">(.*?)</span>',
            page,
        )
    }
    assert rows["allow_hosts"] == ["10.0.0.0/8, 127.0.0.1", "demo"], "a list in words"
    assert rows["policy"] == ["adaptive", "demo"], "what the demo sets is not called a default"
    assert rows["collector_tick"] == ["1 s", "demo"]
    assert rows["retention_days"] == ["0", "default"]
    assert rows["max_interval_seconds"][0] == "24 h", "with units"
    assert rows["max_body_megabytes"][0] == "20 MB"
    assert "<code>serve</code>" in page, "code as code"
    assert len(rows) == len(SETTINGS)


def test_each_setting_belongs_to_one_group() -> None:
    grouped = [name for _, names in GROUPS for name in names]
    assert sorted(grouped) == sorted(setting.name for setting in SETTINGS)


def test_settings_are_found_by_their_words(visitor: Visitor) -> None:
    page = visitor.see("/settings?search=mail+server")
    assert "smtp_host" in page and "collector_tick" not in page and "How fresh" not in page
    assert re.search(r'<th scope="row">Feed</th><td>rss\.feed, rss</td>', page), "types by their titles"


def test_pages_end_with_the_version_of_headwater(visitor: Visitor, store: Store) -> None:
    with store.writing() as connection:
        add_source(connection, name="one", type="rss.feed", url="https://one.example/", now=0.0)
    for path in ("/settings", "/sources/1"):
        assert f"<footer>Headwater {__version__}</footer>" in visitor.see(path)


def test_a_reader_may_look_and_change_nothing(store: Store, settings: Settings) -> None:
    with store.writing() as connection:
        _, secret = add_key(connection, name="reader", scopes=["read"], now=NOON)
    app = create_app(store, replace(settings, host="0.0.0.0"))
    with TestClient(app, base_url="https://x.example", follow_redirects=False) as browser:
        sign_in(browser, secret)
        page = browser.get("/settings").text
        assert 'id="keys"' not in page, "keys are for admins"
        token = token_in(page)
        for path in ("/settings/keys", "/settings/intervals", "/settings/keys/1/revoke", "/outlets"):
            answer = browser.post(
                path, data={"form_token": token, "name": "x", "scope": "admin", "type": "rss"}
            )
            assert answer.status_code == 403, path


def test_no_secret_is_on_the_page(store: Store, settings: Settings) -> None:
    app = create_app(store, replace(settings, password="correct horse"))
    with TestClient(app, base_url="http://127.0.0.1", follow_redirects=False) as browser:
        sign_in(browser, "correct horse")
        assert "correct horse" not in browser.get("/settings").text


def test_plugins_are_listed_and_a_broken_one_says_what_is_wrong(
    visitor: Visitor, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "There are no plugins" in visitor.see("/settings")
    monkeypatch.setattr(
        settings,
        "list_plugins",
        lambda: [
            ListedPlugin("collector", "web.good", "good-package 1.0"),
            ListedPlugin(
                "step", "bad_step", "<b>bad</b> 2.0", Text("{kind}: {problem}", kind="E", problem="<i>")
            ),
        ],
    )
    page = visitor.see("/settings")
    assert "good-package 1.0" in page
    assert "&lt;b&gt;bad" in page
    assert "E: &lt;i&gt;" in page
