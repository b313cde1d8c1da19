"""The command line as a user has it: real processes, both databases, every mistake one clear line."""

import json
import re
import signal
import socket
import subprocess
import sys
import time
from datetime import UTC, datetime
from pathlib import Path

import pytest

from headwater import __version__
from headwater.store.collecting.sources import list_sources
from headwater.store.core.database import Store
from headwater.store.reading.items import list_items
from tests.command import Headwater
from tests.origin import Origin

FEED = (
    b'<rss version="2.0"><channel><title>One &amp; Only</title><link>http://one.example/</link>'
    b"<item><title>First</title><guid>1</guid><link>http://one.example/1</link>"
    b"<pubDate>Mon, 06 Nov 2023 10:00:00 GMT</pubDate></item>"
    b"<item><title>Second</title><guid>2</guid><link>http://one.example/2</link></item></channel></rss>"
)


@pytest.fixture
def headwater(tmp_path: Path, database_url: str) -> Headwater:
    return Headwater(tmp_path, database_url)


@pytest.fixture
def alone(tmp_path: Path) -> Headwater:
    """For what does not depend on the kind of database."""
    return Headwater(tmp_path, None)


def test_add_collect_items_is_the_same_on_both_databases(headwater: Headwater, origin: Origin) -> None:
    if headwater.environment["HEADWATER_DATABASE_URL"].startswith("sqlite"):
        del headwater.environment["HEADWATER_DATABASE_URL"]  # the default one
    origin.route("/feed", body=FEED, etag='"v1"')
    added = headwater.json("source", "add", origin.url("/feed"))
    assert (added["id"], added["name"], added["type"]) == (1, "One & Only", "rss.feed")
    headwater.ok("collect")
    items = headwater.json("items")
    assert [item["title"] for item in items] == ["Second", "First"]
    assert items[1]["published_at"] == "2023-11-06T10:00:00.000Z"
    assert (items[0]["published_at"], items[0]["date_invented"]) == (None, True)
    assert len(origin.requests) == 1, "adding is the first visit, and nothing was due after it"

    summary = headwater.json("collect", "--all")
    assert (summary["visits"], summary["items_new"], summary["unchanged"]) == (1, 0, 1)
    assert origin.requests[1].headers["if-none-match"] == '"v1"'
    assert headwater.json("items") == items


def test_a_source_added_unchecked_is_collected_next(headwater: Headwater, origin: Origin) -> None:
    origin.route("/feed", body=FEED, etag='"v1"')
    headwater.environment["HEADWATER_POLICY"] = "interval"
    out = headwater.ok("source", "add", origin.url("/feed"), "--no-check", "--name", "Mine")
    assert out == "added source 1: Mine; the collector visits it next\n"
    assert not origin.requests
    assert "1 visit: 2 new items" in headwater.ok("collect")
    assert "Nothing is due; the next visit is in 4 h." in headwater.ok("collect")
    headwater.ok("collect", FETCH_INTERVAL_RSS="0.01")
    assert "if-none-match" not in origin.requests[0].headers


def test_pause_resume_remove(headwater: Headwater, origin: Origin) -> None:
    origin.route("/feed", body=FEED)
    headwater.ok("source", "add", origin.url("/feed"), "--config", "fetch_interval_minutes=0.01")
    time.sleep(1.1)  # no source is visited more often than once a second
    assert headwater.ok("source", "pause", "1") == "paused source 1: One & Only\n"
    assert headwater.json("source", "list")[0]["schedule_enabled"] is False
    assert headwater.json("collect")["visits"] == 0
    assert headwater.ok("source", "resume", "1") == "resumed source 1: One & Only\n"
    assert headwater.json("collect")["visits"] == 1
    assert headwater.ok("source", "remove", "1") == "removed source 1: One & Only\n"
    assert headwater.json("source", "list") == []
    assert len(headwater.json("items")) == 2, "removing a source does not remove what it brought"
    assert headwater.refused("source", "show", "1").startswith("there is no source 1")


def test_show_and_list_for_people(headwater: Headwater, origin: Origin) -> None:
    origin.route("/feed", body=FEED)
    assert "There are no sources yet" in headwater.ok("source", "list")
    assert "Nothing was collected yet" in headwater.ok("items")
    headwater.ok("source", "add", origin.url("/feed"), "--config", "bearer_token=hush", "--folder", "News")
    for command in (("source", "list"), ("source", "show", "1"), ("items",)):
        assert "One & Only" in headwater.ok(*command)
    why = headwater.json("explain", "1")["why"]
    assert re.search(r"; next visit \d{4}-\d\d-\d\d \d\d:\d\d\S* \w+", why)
    assert why in headwater.ok("source", "list"), "each plan's reason is listed with it"
    headwater.ok("source", "add", origin.url("/later"), "--no-check")
    assert "first in line" in headwater.ok("source", "list")
    shown = headwater.ok("source", "show", "1", "--json")
    assert "hush" not in shown
    assert json.loads(shown)["folder"] == "News"
    assert origin.requests[0].headers["authorization"] == "Bearer hush"


def test_source_show_tells_people_in_words(headwater: Headwater, origin: Origin) -> None:
    origin.route("/feed", body=FEED)
    out = headwater.ok("source", "add", origin.url("/feed"), "--folder", "News", "--interval", "90")
    assert out.startswith("made the folder News\nadded source 1: One & Only; next visit in "), (
        "a slip is seen"
    )
    origin.route("/html", body="<!doctype html><html><title>no feed</title></html>", content_type="text/html")
    added = ("source", "add", origin.url("/html"), "--no-check", "--config", "bearer_token=hush")
    assert headwater.ok(*added, "--folder", "News").startswith("added source 2")
    headwater.ok("collect", "--source", "1")
    shown = headwater.ok("source", "show", "1")
    for words in (
        r"Type +Feed \(rss\.feed\)",
        r"State +on time",
        r"Last visit +\d+ s ago",
        r"Next visit +in 90 min|in 89 min",
        r"Why +fixed interval of 90 min; next visit 2",
        r"Visits +2, of which 1 found something new and 0 failed",
        r"Newest item +\d+ s ago",
        r"Policy +every 90 min, set for this source",
    ):
        assert re.search(rf"^{words}", shown, re.MULTILINE), (words, shown)
    assert not re.search(r"True|False|None|[{}]|\d{4}-\d\d-\d\dT", shown), "no dump of a record"
    headwater.run("collect", "--source", "2")
    failing = headwater.ok("source", "show", "2")
    assert "bearer_token = ***" in failing
    assert re.search(r"failing since .*: This is a web page, not a feed\.", failing)
    assert "what to do: check its address" in failing
    assert re.search(r"^Failing sources +1 not a feed", headwater.ok("status"), re.MULTILINE)
    for name in ("feed", "Feed", "rss", "订阅源"):
        assert len(headwater.json("source", "list", "--type", name)) == 2, (
            "types by the title that lists show"
        )


def test_name_that_no_person_chose_follows_the_title(headwater: Headwater, origin: Origin) -> None:
    url = origin.route("/feed", body=FEED)
    headwater.ok("source", "add", url, "--no-check")
    assert headwater.json("source", "show", "1")["name"] == "127.0.0.1", "its host, until its title is known"
    for title, name, chosen in (
        ("One &amp; Only", "One & Only", None),
        ("New", "New", None),
        ("Newer", "Mine", "Mine"),
    ):
        if chosen:
            headwater.ok("source", "edit", "1", "--name", chosen)
        origin.route("/feed", body=FEED.replace(b"One &amp; Only", title.encode()))
        headwater.ok("collect", "--source", "1")
        shown = headwater.json("source", "show", "1")
        assert (shown["name"], shown["title"]) == (name, title.replace("&amp;", "&"))


def test_commands_that_end_log_warnings_only_unless_told(headwater: Headwater, origin: Origin) -> None:
    origin.route("/feed", body=FEED)
    headwater.environment["HEADWATER_POLICY"] = "interval"
    headwater.ok("source", "add", origin.url("/feed"))
    headwater.ok("collect", FETCH_INTERVAL_RSS="90")
    code, _, err = headwater.run("collect", FETCH_INTERVAL_RSS="60", HEADWATER_LOG_LEVEL="info")
    assert (code, "settings have changed: planned 1 sources again" in err) == (0, True)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("source", "add", "http://127.0.0.1:9/feed"), "127.0.0.1:9"),
        (("source", "add", "http://name.invalid/feed"), "name.invalid"),
        (("source", "add", "ftp://one.example/feed"), "ftp://one.example/feed is not an address of the web"),
        (("source", "add", ""), "'' is not an address of the web"),
        (("source", "add", "/etc/passwd"), "/etc/passwd is not an address of the web"),
        (
            ("source", "add", "{origin}/html"),
            "{origin}/html names no feed, and none is at the usual places",
        ),
        (("source", "add", "{origin}/html"), "--type website --config watch=true"),
        (("source", "add", "{origin}/missing"), "404"),
        (
            ("source", "add", "{origin}/news.xml", "--type", "rrs"),
            "there is no source type rrs; did you mean rss?",
        ),
        (("source", "add", "{origin}/news.xml", "--type", "sitemp"), "did you mean sitemap?"),
        (
            ("source", "add", "{origin}/news.xml", "--config", "colour=red"),
            "config of rss.feed: there is no key colour",
        ),
        (
            ("source", "add", "{origin}/news.xml", "--config", "fetch_interval_minutes=often"),
            "config of rss.feed: fetch_interval_minutes = often is wrong",
        ),
        (
            ("source", "add", "{origin}/news.xml", "--config", "fetch_interval_minutes=true"),
            "config of rss.feed: fetch_interval_minutes = True is wrong",
        ),
        (("source", "add", "{origin}/news.xml", "--name", "\udcff"), "is not UTF-8"),
        (("source", "add", "{origin}/news.xml\udcff"), "is not UTF-8"),
        (("--database", "", "collect"), "--database is empty"),
        (("--database", "sqlite:///:memory:", "collect"), "would keep nothing"),
        (("--database", "sqlite:///x.db?mode=ro", "collect"), "a SQLite URL takes no parameters"),
        (("source", "add", "{origin}/news.xml", "--config", "x"), "--config x is not KEY=VALUE"),
        (("source", "show", "7"), "there is no source 7"),
        (("collect", "--source", "7"), "there is no source 7"),
        (("collect", "--loop", "--all"), "--loop, --source and --all each say what to visit"),
        (("collect", "--loop", "--source", "1"), "give one of them"),
        (("collect", "--all", "--source", "1"), "give one of them"),
        (("items", "--source", "7"), "there is no source 7"),
        (("source", "show", "seven"), "there is no source seven; `headwater source list` shows them all"),
        (("source", "show", "99999999999999999999"), "there is no source 99999999999999999999"),
        (("items", "--source", "99999999999999999999"), "there is no source 99999999999999999999"),
        (("items", "--limit", "99999999999999999999"), "--limit: it takes a smaller number"),
        (("items", "--limit", "0"), "--limit: it takes 1 or more"),
        (("items", "--limit", "many"), "--limit: it takes a whole number"),
        (("serve", "--port", "99999"), "--port: it takes 65535 or less"),
        (("source", "add", "{origin}/news.xml", "--interval", "often"), "--interval: it takes a number"),
        (
            ("source", "add", "{origin}/news.xml", "--policy", "magic"),
            "there is no policy magic: choose from adaptive",
        ),
        (("source", "edit", "7", "--name", "x"), "there is no source 7"),
        (("import", "x", "--from", "nope"), "--from: 'nope' is not one of 'freshrss'"),
        (("collect", "--source", "99999999999999999999"), "there is no source 99999999999999999999"),
        (("colect",), "No such command 'colect'"),
        (("--set", "colector_tick=1", "collect"), "there is no setting colector_tick (command line)"),
    ],
)
def test_mistakes_are_one_clear_line_and_store_nothing(
    headwater: Headwater,
    store: Store,
    origin: Origin,
    arguments: tuple[str, ...],
    message: str,
) -> None:
    origin.route("/news.xml", body=FEED)  # where a page without a feed is not looked through for one
    origin.route("/html", body="<!doctype html><html><title>no feed</title></html>", content_type="text/html")
    base = origin.url("").rstrip("/")
    said = headwater.refused(*(argument.format(origin=base) for argument in arguments))
    assert message.format(origin=base) in said
    with store.reading() as connection:
        assert list_sources(connection) == []
        assert list_items(connection) == []


def test_a_password_of_digits_is_a_password(alone: Headwater, origin: Origin) -> None:
    origin.route("/feed", body=FEED)
    headwater = ("source", "add", origin.url("/feed"), "--config", "user=ann", "--config", "password=12345")
    assert alone.json(*headwater)["config"] == {"user": "ann", "password": "***"}
    assert origin.requests[0].headers["authorization"] == "Basic YW5uOjEyMzQ1"


def test_a_number_written_as_text_is_stored_as_a_number(alone: Headwater, origin: Origin) -> None:
    origin.route("/feed", body=FEED)
    added = alone.json("source", "add", origin.url("/feed"), "--config", 'fetch_interval_minutes="5"')
    assert added["config"] == {"fetch_interval_minutes": 5.0}


def test_an_item_without_its_own_date_shows_when_it_was_updated(alone: Headwater, origin: Origin) -> None:
    entry = "<entry><id>1</id><title>Old</title><updated>2001-01-01T00:00:00Z</updated></entry>"
    origin.route("/atom", body=f'<feed xmlns="http://www.w3.org/2005/Atom"><title>A</title>{entry}</feed>')
    alone.ok("source", "add", origin.url("/atom"))
    age = datetime.now(UTC).year - 2001
    assert re.search(rf"\b({age}|{age + 1}) years ago\b", alone.ok("items"))


def test_a_duplicate_is_refused_without_a_request(headwater: Headwater, origin: Origin) -> None:
    origin.route("/feed", body=FEED)
    headwater.ok("source", "add", origin.url("/feed"))
    said = headwater.refused("source", "add", origin.url("/feed/#again"))
    assert said.endswith("is there already: source 1, One & Only")
    assert len(origin.requests) == 1


def test_a_private_address_is_refused_by_default(alone: Headwater, origin: Origin) -> None:
    origin.route("/feed", body=FEED)
    said = alone.refused("source", "add", origin.url("/feed"), HEADWATER_ALLOW_HOSTS="")
    assert "HEADWATER_ALLOW_HOSTS" in said
    assert not origin.requests


def test_a_database_that_cannot_be_written(alone: Headwater, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    said = alone.refused("source", "list", HEADWATER_DATABASE_URL=f"sqlite:///{tmp_path}/file/x.db")
    assert "cannot write the database file" in said
    (tmp_path / "broken.db").write_bytes(b"this is not a database, whatever its name says" * 100)
    (tmp_path / "broken.db").chmod(mode := 0o644)
    assert "is not a database" in alone.refused(
        "source", "list", HEADWATER_DATABASE_URL=f"sqlite:///{tmp_path}/broken.db"
    )
    assert (tmp_path / "broken.db").stat().st_mode & 0o777 == mode, "a file that is not ours keeps its mode"
    said = alone.refused("source", "list", HEADWATER_DATABASE_URL="postgresql://ann:hush@127.0.0.1:9/x")
    assert "127.0.0.1" in said
    assert "hush" not in said


@pytest.mark.parametrize(
    ("environment", "message"),
    [
        ({"COLLECTOR_TICK": "soon"}, "COLLECTOR_TICK = soon is not allowed (environment): it takes a number"),
        ({"HEADWATER_ALLOW_HOSTS": ":::"}, "HEADWATER_ALLOW_HOSTS: ::: is not a host name"),
        ({"HEADWATER_ALLOW_HOSTS": "http://127.0.0.1/"}, "http://127.0.0.1/ is not a host name"),
        ({"HEADWATER_ALLOW_HOSTS": "10.0.0.0/99"}, "10.0.0.0/99 is not a host name"),
        (
            {"FETCH_INTERVAL_RRS": "5"},
            "FETCH_INTERVAL_RRS (environment): there is no source type rrs; did you mean rss?",
        ),
    ],
)
def test_a_wrong_setting_stops_the_start(alone: Headwater, environment: dict[str, str], message: str) -> None:
    for command in (("collect",), ("config",), ("parse", "feed.xml")):
        assert message in alone.refused(*command, **environment)


def test_debug_shows_the_traceback(alone: Headwater) -> None:
    code, _, err = alone.run("--debug", "source", "show", "7")
    assert code != 0
    assert "Traceback" in err


def test_config_shows_values_and_origins(alone: Headwater) -> None:
    rows = {row["name"]: row for row in alone.json("config", COLLECTOR_INTERVAL="30", FETCH_INTERVAL_RSS="9")}
    assert (rows["collector_tick"]["value"], rows["collector_tick"]["origin"]) == (30.0, "environment")
    assert (rows["port"]["value"], rows["port"]["origin"]) == (8626, "default")
    assert rows["fetch_interval.rss"]["value"] == 9
    shown = alone.ok("config", HEADWATER_DATABASE_URL="postgresql://ann:hush@db/x")
    assert "postgresql://ann:***@db/x" in shown
    assert "hush" not in shown
    assert "environment" in shown


def test_version(alone: Headwater) -> None:
    assert alone.ok("--version") == f"headwater {__version__}\n"


def test_help_in_chinese(alone: Headwater) -> None:
    assert "采集" in alone.ok("--help", HEADWATER_LANGUAGE="zh")
    code, _, err = alone.run("source", "show", "7", HEADWATER_LANGUAGE="", LANG="zh_CN.UTF-8")
    assert code == 2
    assert err == "错误: 没有编号为 7 的来源；`headwater source list` 可列出全部\n"


def test_the_language_may_be_set_like_any_setting(alone: Headwater, tmp_path: Path) -> None:
    nothing_yet = "还没有来源"
    assert nothing_yet in alone.ok("--set", "language=zh", "source", "list")
    (tmp_path / ".env").write_text("HEADWATER_LANGUAGE=zh\n")
    assert nothing_yet in alone.ok("source", "list", HEADWATER_LANGUAGE="", LANG="en_GB.UTF-8")
    (tmp_path / "page.html").write_text("<!doctype html><html><title>x</title></html>")
    code, _, err = alone.run("parse", "page.html", HEADWATER_LANGUAGE="")
    assert (code, err.startswith("错误: ")) == (1, True)


def test_config_shows_the_interval_in_force(alone: Headwater) -> None:
    (alone.directory / ".env").write_text("FETCH_INTERVAL_RSS_FEED=10\n")
    rows = alone.json("config", FETCH_INTERVAL_RSS="20")
    shown = {row["name"]: row["value"] for row in rows if row["name"].startswith("fetch_interval")}
    assert shown == {"fetch_interval.rss": 20}


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_the_loop_stops_politely(headwater: Headwater, origin: Origin, number: int) -> None:
    origin.route("/feed", body=FEED)
    headwater.ok("source", "add", origin.url("/feed"), "--no-check")
    process = headwater.start("collect", "--loop")
    try:
        deadline = time.monotonic() + 30
        while not origin.requests and time.monotonic() < deadline:
            time.sleep(0.05)
        time.sleep(0.3)
        process.send_signal(number)
        out, _ = process.communicate(timeout=40)
    finally:
        process.kill()  # a loop that goes on would claim the sources of the tests after this one
    assert process.returncode == 0
    assert "1 visit: 2 new items" in out


def test_an_interrupt_before_anything_runs_is_quiet(alone: Headwater) -> None:
    impatient = """
import os, signal, sys
class Impatient:
    def find_spec(self, name, *rest):
        if name == "headwater.cli.app":
            os.kill(os.getpid(), signal.SIGINT)
sys.meta_path.insert(0, Impatient())
sys.argv = ["headwater", "demo"]
from headwater.cli import main
main()
"""
    done = subprocess.run(
        [sys.executable, "-c", impatient],
        cwd=alone.directory,
        env=alone.environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")


def test_upkeep_follows_a_changed_retention_at_once(headwater: Headwater, origin: Origin) -> None:
    origin.route("/feed", body=FEED)
    headwater.ok("source", "add", origin.url("/feed"))
    assert headwater.ok("upkeep") == "deleted 0 items and 0 visit records\n"
    assert headwater.ok("upkeep", HEADWATER_RETENTION_ITEMS="1") == "deleted 1 item and 0 visit records\n"
    assert len(headwater.json("items")) == 1
    assert headwater.json("upkeep") == {"items_deleted": 0, "visit_records_deleted": 0}


def test_serve_collects_and_shows(headwater: Headwater, origin: Origin) -> None:
    from urllib.request import urlopen

    origin.route("/feed", body=FEED)
    headwater.ok("source", "add", origin.url("/feed"), "--no-check")
    process = headwater.start("serve", HEADWATER_PORT="0")
    assert process.stdout is not None
    address = process.stdout.readline().split()[-1]
    deadline = time.monotonic() + 30
    page = ""
    while "Second" not in page and time.monotonic() < deadline:
        page = urlopen(address).read().decode()
        time.sleep(0.1)
    process.terminate()
    process.communicate(timeout=40)
    assert process.returncode == 0
    assert "Second" in page


def test_serve_on_a_taken_port_says_so(alone: Headwater) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        assert "choose another port with --port or HEADWATER_PORT" in alone.refused(
            "serve", HEADWATER_PORT=port
        )
