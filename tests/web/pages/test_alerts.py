"""Alerts in the browser."""

import html

from headwater.store.core.database import Store
from headwater.store.publishing.alerts import Problem, get_rules, note_problems
from headwater.store.publishing.targets import Target, add_target
from tests.clock import NOON
from tests.web.pages.conftest import Visitor


def test_alerts_are_shown_and_rules_saved(visitor: Visitor, store: Store) -> None:
    assert "No checks are enabled" in visitor.see("/alerts")
    with store.writing() as connection:
        add_target(connection, Target("team", "webhook", {"url": "https://a.example/hook"}), NOON)
        note_problems(connection, [Problem("gone", "1", {"id": 1, "name": "<River>", "error": "410"})], NOON)
    fields = {"target": "team", "kind": "gone", "quiet_from": "22:00", "quiet_until": "07:00"}
    page = visitor.send("/alerts", page="/alerts", **fields).text
    assert "&lt;River&gt; is gone: 410" in page
    with store.reading() as connection:
        rules = get_rules(connection)
    assert (rules.targets, rules.quiet_from, "lag" in rules.off, "gone" in rules.off) == (
        ("team",),
        "22:00",
        True,
        False,
    )
    refused = visitor.send("/alerts", page="/alerts", target="team", quiet_from="22:00")
    assert refused.status_code == 400
    assert "quiet hours have a beginning and an end" in html.unescape(refused.text)
