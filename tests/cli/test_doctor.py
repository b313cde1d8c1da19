"""`headwater doctor` finds what is wrong and says what to do."""

import time
from pathlib import Path
from typing import Any

import pytest

from headwater.cli.doctor import examine
from headwater.cli.session import Session
from headwater.store.collecting.queue import claim_sources
from headwater.store.collecting.sources import add_source
from headwater.store.core.database import Store
from headwater.store.core.migrate import upgrade
from headwater.store.core.tables import metadata, sources
from tests.command import Headwater
from tests.databases import copy_sqlite
from tests.origin import Origin
from tests.rows import fill


def checks(headwater: Headwater, **environment: str) -> tuple[int, dict[str, list[dict[str, Any]]]]:
    import json

    code, out, err = headwater.run("doctor", "--json", **environment)
    assert err == ""
    answer = json.loads(out)
    assert answer["ok"] == (code == 0)
    found: dict[str, list[dict[str, Any]]] = {}
    for each in answer["checks"]:
        found.setdefault(each["name"], []).append(each)
        assert each["state"] == "ok" or each["advice"]
    return code, found


def states(found: dict[str, list[dict[str, Any]]], name: str) -> set[str]:
    return {each["state"] for each in found[name]}


def test_a_working_headwater_is_well(database_url: str, tmp_path: Path, origin: Origin) -> None:
    origin.route("/feed", body="<rss version='2.0'><channel><title>t</title></channel></rss>")
    headwater = Headwater(tmp_path, database_url)
    headwater.ok("source", "add", origin.url("/feed"))
    code, found = checks(headwater, HEADWATER_CONTACT_URL="mailto:me@example.org")
    assert code == 0
    assert all(states(found, name) == {"ok"} for name in found), found
    assert set(found) == {
        *("settings", "disk", "extras", "plans", "plugins", "database", "migrations", "clock", "collecting"),
        *("pipelines", "search", "sources", "network"),
    }
    assert "127.0.0.1" in found["network"][0]["message"]


def test_doctor_warns_of_plans_made_without_compiled_code(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HEADWATER_DATA_DIR", str(tmp_path / "data"))
    monkeypatch.setattr("headwater.schedule.arithmetic.load_native", lambda: None)
    (plans,) = [finding for finding in examine(Session()) if finding.name == "plans"]
    assert plans.state == "warning"
    assert "C compiler" in str(plans.advice)


def test_what_is_wrong_is_found(store: Store, tmp_path: Path) -> None:
    with store.writing() as connection:
        fill(connection, metadata)  # runs that wait since long ago
        connection.execute(
            sources.update().values(
                due_at=time.time() - 5000,
                url="http://127.0.0.1:9/feed",
                consecutive_failures=0,
            )
        )
        connection.exec_driver_sql("UPDATE items SET first_seen_at = 4102444800")
    headwater = Headwater(tmp_path, store.url.render_as_string(hide_password=False))
    code, found = checks(
        headwater, HEADWATER_ALLOW_HOSTS="0.0.0.0/0,127.0.0.1", HEADWATER_PUBLIC_URL="http://x.example"
    )
    assert code == 1
    for name in ("collecting", "pipelines", "clock", "network"):
        assert states(found, name) == {"wrong"}, found[name]
    assert len(found["settings"]) == 3


def test_a_lease_without_end_is_found(store: Store, tmp_path: Path) -> None:
    with store.writing() as connection:
        source = add_source(connection, name="n", type="rss.feed", url="https://a.example/", now=time.time())
        claim_sources(connection, [source.id], now=time.time(), lease_until=time.time() + 9 * 86_400)
    _, found = checks(Headwater(tmp_path, store.url.render_as_string(hide_password=False)))
    assert states(found, "collecting") == {"warning"}, found["collecting"]
    assert found["collecting"][0]["message"].startswith("1 source is leased for days")


def test_doctor_finds_a_dropped_table_and_repairs_it(tmp_path: Path, sqlite_template: Path) -> None:
    headwater = Headwater(tmp_path, copy_sqlite(sqlite_template, tmp_path / "damaged.db"))
    with Store(headwater.environment["HEADWATER_DATABASE_URL"]) as store, store.writing() as connection:
        connection.exec_driver_sql("DROP TABLE source_stats")
        connection.exec_driver_sql("DROP INDEX ix_items_item_at")
    code, found = checks(headwater)
    assert code == 1
    assert [(each["state"], each["message"]) for each in found["schema"]] == [
        ("wrong", "the table source_stats is missing"),
        ("wrong", "the index ix_items_item_at is missing, or has other columns"),
    ]
    assert "headwater doctor --repair" in found["schema"][0]["advice"]
    assert "Nothing is wrong." in headwater.ok("doctor", "--repair")


def test_a_database_that_is_away(tmp_path: Path) -> None:
    headwater = Headwater(tmp_path, "postgresql://unknown@127.0.0.1:9/none")
    code, found = checks(headwater)
    assert code == 1
    assert states(found, "database") == {"wrong"}


def test_wrong_settings(tmp_path: Path) -> None:
    code, found = checks(Headwater(tmp_path, None), HEADWATER_PORT="nonsense")
    assert code == 1
    assert states(found, "settings") == {"wrong"}


@pytest.mark.parametrize(
    ("version", "state"), [("9999", "wrong"), ("unfinished", "wrong"), ("0001", "warning")]
)
def test_another_schema_is_told_not_touched(version: str, state: str, tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'some.db'}"
    with Store(url) as store:
        upgrade(store, "0001")
        with store.writing() as connection:
            connection.exec_driver_sql(f"UPDATE alembic_version SET version_num = '{version}'")
    code, found = checks(Headwater(tmp_path, url))
    assert states(found, "migrations") == {state}
    assert code == (1 if state == "wrong" else 0)


def test_people_read_it_line_by_line(tmp_path: Path) -> None:
    out = Headwater(tmp_path, f"sqlite:///{tmp_path / 'new.db'}").ok("doctor")
    assert "✓ migrations: it is empty; the first start makes its tables" in out
    assert "    → set HEADWATER_CONTACT_URL" in out
    assert out.endswith("Nothing is wrong.\n")
